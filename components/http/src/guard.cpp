#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <openssl/rand.h>
#include <nlohmann/json.hpp>
#include <txinbox/error.hpp>
#include <txinbox/http.hpp>

#include "digest.hpp"
#include "problem.hpp"
#include "stored_response.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t longest_scope = 120;
constexpr std::size_t longest_business_key = 255;
constexpr int server_error = 500;

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorCode::invalid_argument, text); }

/// The scope as the first part of a business key. It ends with a slash and contains no other slash. So two different
/// pairs of scope and key never have the same business key.
std::string prefix_of(std::string_view scope) {
  std::string prefix;
  for (const char c : scope) {
    if (c == '/') {
      prefix += "%2F";
    } else if (c == '%') {
      prefix += "%25";
    } else {
      prefix += c;
    }
  }
  if (prefix.empty() || prefix.size() > longest_scope) {
    refuse("the scope of a request must have 1 to 120 bytes, with 3 for each slash and percent sign; it has " +
           std::to_string(prefix.size()));
  }
  return prefix + "/";
}

bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

/// Errors: `Error` invalid_key if the key of a client is not valid.
void check_key(const std::string& key, std::size_t longest) {
  const auto refuse_key = [](const std::string& text) { throw Error(ErrorCode::invalid_key, text); };
  if (key.empty()) refuse_key("the key of the request is empty");
  if (key.size() > longest) {
    refuse_key("the key of the request has " + std::to_string(key.size()) + " bytes; it must have at most " +
               std::to_string(longest));
  }
  if (key.find('\0') != std::string::npos) refuse_key("the key of the request holds a NUL character");
  if (!is_utf8(key)) refuse_key("the key of the request is not valid UTF-8");
}

/// A unique key for a request without a key.
std::string random_key() {
  std::array<unsigned char, 16> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) refuse("OpenSSL has no random bytes");
  std::string text(bytes.begin(), bytes.end());
  return "without a key " + sha256_hex(text).substr(0, 32);
}

/// What a request asks of the consumer.
struct Call {
  Message message;
  std::string too_late = {};  ///< As `RequestKey::too_late`.
};

bool is_server_error(const Response& response) { return response.status >= server_error; }

}  // namespace

/// The settings and functions that all requests of a guard share.
class Guard::Impl {
 public:
  Impl(TxConsumer* transactions, LeaseConsumer* leases, Scope scope, GuardOptions options)
      : transactions_(transactions), leases_(leases), scope_(std::move(scope)), options_(std::move(options)) {
    if (!scope_) refuse("the scope of a Guard is empty; give a function that says whose key it is");
    if (!options_.key) refuse("GuardOptions::key is empty; give a function, such as key_in_header()");
    if (options_.valid_for.count() < 0) refuse("GuardOptions::valid_for is negative; zero never ends");
    if (options_.max_retry_after < seconds(1)) refuse("GuardOptions::max_retry_after must be at least a second");
    for (const std::string& name : options_.kept_headers) {
      for (const char* never : {"Set-Cookie", "Authorization", "Proxy-Authenticate", "WWW-Authenticate"}) {
        if (same_name(name, never))
          refuse("GuardOptions::kept_headers holds " + name + ", which is for one client only");
      }
    }
  }

  TxConsumer* transactions() const noexcept { return transactions_; }
  LeaseConsumer* leases() const noexcept { return leases_; }
  const GuardOptions& options() const noexcept { return options_; }
  std::size_t max_result() const noexcept {
    return transactions_ != nullptr ? transactions_->options().max_result : leases_->options().max_result;
  }

  /// Errors: `Error` invalid_key for the client's key.
  Call call_of(const Request& request) const {
    auto key = options_.key(request);
    if (!key && options_.required) {
      const std::string& where = options_.key.where();
      throw Error(ErrorCode::invalid_key,
                  (where.empty() ? "the request has no key" : "the request has no key in " + where) +
                      "; send one, and the same one when you send it again");
    }
    Call call{.message = {.business_key = prefix_of(scope_(request)), .valid_for = options_.valid_for}};
    if (key) check_key(key->text, longest_business_key - call.message.business_key.size());
    call.message.business_key += key ? key->text : random_key();
    if (key) {
      call.message.content = fingerprint_of(request, *key);
      call.too_late = std::move(key->too_late);
    }
    return call;
  }

  Response bad_request(int status, const std::string& title, const std::string& detail) const {
    return problem(status, title, detail, options_.documentation);
  }

  Response later(Response response, milliseconds rest) const {
    const auto wait =
        std::clamp(std::chrono::ceil<seconds>(rest), seconds(1), std::chrono::floor<seconds>(options_.max_retry_after));
    response.headers.push_back({"Retry-After", std::to_string(wait.count())});
    return response;
  }

  Response failed(const std::exception_ptr& error, const Request& request) const noexcept {
    try {
      if (options_.on_error) options_.on_error(error, request);
      const bool passes =
          is_transient(error) || action_for(error) == Action::stop || action_for(error) == Action::redeliver;
      if (passes && !is_unknown(error)) {
        return later(problem(503, "Not available", "Send the request again later, with the same key."), {});
      }
      return problem(server_error, "Internal error", "Send the request again with the same key.");
    } catch (...) {
      return {.status = server_error};
    }
  }

 private:
  std::string fingerprint_of(const Request& request, const RequestKey& key) const {
    if (options_.fingerprint) return options_.fingerprint(request);
    return key.fingerprint ? *key.fingerprint : whole_request(request);
  }

  /// Whether the error comes from the handler or from wrong use, and is not an error of the database.
  static bool is_unknown(const std::exception_ptr& error) noexcept {
    if (is_transient(error)) return false;
    try {
      std::rethrow_exception(error);
    } catch (const Error& e) {
      return e.code() == ErrorCode::transaction_lost || e.code() == ErrorCode::unknown_state ||
             e.code() == ErrorCode::invalid_argument;
    } catch (...) {
      return true;
    }
  }

  TxConsumer* transactions_;
  LeaseConsumer* leases_;
  Scope scope_;
  GuardOptions options_;
};

/// One call of `handle`.
class Guard::Exchange {
 public:
  explicit Exchange(const Impl& guard) : guard_(guard) {}

  /// The answer if the claim finds no earlier request with the key. The handler does not run then.
  void refuse_if_new(Response answer) { if_new_ = std::move(answer); }

  /// Runs the handler inside a delivery, and stores the answer for later requests with the same key.
  void run(Delivery& delivery, const std::function<Response()>& handler) {
    answer_.reset();
    if (if_new_) throw RetryLater(milliseconds(0), "a new request came too late");
    try {
      answer_ = handler();
    } catch (const Refusal& refusal) {
      answer_ = refusal.response();
      if (guard_.transactions() != nullptr) delivery.refuse(kept_form());
      delivery.store(kept_form());
      return;
    }
    const bool keeps = guard_.leases() != nullptr && guard_.options().keep_server_errors;
    // RetryLater rolls the transaction back and counts no failure of the message.
    if (is_server_error(*answer_) && !keeps) throw RetryLater(milliseconds(0), "the handler answered 5xx");
    delivery.store(kept_form());
  }

  Response answer(Result&& result, const Request& request) {
    switch (result.outcome) {
      case Outcome::consumed:
        if (answer_) return std::move(*answer_);
        break;
      case Outcome::already_consumed:
        if (auto stored = result.stored ? read_stored_form(*result.stored) : std::nullopt) {
          stored->headers.push_back({"Idempotent-Replayed", "true"});
          return std::move(*stored);
        }
        return problem(409, "Already done", "The request had its effect. Its answer was not kept.");
      case Outcome::conflict:
        return guard_.bad_request(422, "Key used for another request",
                                  "An earlier request with this key was different. Use a new key for a new request.");
      case Outcome::in_progress:
        return guard_.later(guard_.bad_request(409, "Still running", "A request with this key is still running."),
                            result.retry_after);
      case Outcome::postponed:
        if (if_new_) return std::move(*if_new_);
        if (answer_ && is_server_error(*answer_)) return std::move(*answer_);
        return guard_.later(problem(503, "Not available", "Send the request again later, with the same key."),
                            result.retry_after);
      case Outcome::parked:
      case Outcome::discarded:
        if (result.error) return guard_.failed(result.error, request);
        return problem(409, "Given up", "An operator must look at the request with this key.");
      case Outcome::failed:
      case Outcome::not_run:
        break;
    }
    return guard_.failed(result.error, request);
  }

 private:
  std::string kept_form() const {
    const auto& kept = guard_.options().kept_headers;
    std::string form = stored_form(*answer_, kept, true);
    if (form.size() <= guard_.max_result() || !guard_.options().keep_head) return form;
    return stored_form(*answer_, kept, false);
  }

  const Impl& guard_;
  std::optional<Response> if_new_;
  std::optional<Response> answer_;  ///< The answer of the handler's last run, with all its header fields.
};

Guard::Guard(TxConsumer& consumer, Scope scope, GuardOptions options)
    : impl_(std::make_unique<Impl>(&consumer, nullptr, std::move(scope), std::move(options))) {
  if (!consumer.options().claim_wait) {
    refuse(
        "the consumer of a Guard has no TxConsumerOptions::claim_wait, so a copy of a running request would wait for "
        "a lock and hold a connection; set it, for example to 0ms");
  }
}

Guard::Guard(LeaseConsumer& consumer, Scope scope, GuardOptions options)
    : impl_(std::make_unique<Impl>(nullptr, &consumer, std::move(scope), std::move(options))) {}

Guard::Guard(Guard&&) noexcept = default;
Guard& Guard::operator=(Guard&&) noexcept = default;
Guard::~Guard() = default;

Guard::Keep::Keep(const Guard& guard) : exchange_(std::make_unique<Exchange>(*guard.impl_)) {}
Guard::Keep::~Keep() = default;

void Guard::Keep::operator()(Delivery& delivery, const std::function<Response()>& handler) const {
  exchange_->run(delivery, handler);
}

namespace {

constexpr const char* bad_key = "Bad idempotency key";

/// What a request asks for, or the answer if the request has no valid message.
template <class Impl>
std::variant<Call, Response> call_or_answer(const Impl& guard, const Request& request) {
  std::size_t size = request.body.size();
  for (const Part& part : request.parts) size += part.content.size();
  if (size > guard.options().max_request) {
    return problem(413, "Request too large", "The body of the request is larger than the service takes.");
  }
  try {
    return guard.call_of(request);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_key) return guard.failed(std::current_exception(), request);
    return guard.bad_request(400, bad_key, error.what());
  } catch (...) {
    return guard.failed(std::current_exception(), request);
  }
}

}  // namespace

Response Guard::handle_in_transaction(const Request& request, const Keep& keep, const Handler& handler) {
  auto asked = call_or_answer(*impl_, request);
  if (auto* answer = std::get_if<Response>(&asked)) return std::move(*answer);
  const Call& call = std::get<Call>(asked);
  try {
    if (impl_->transactions() == nullptr) refuse("a handler of a Guard on a LeaseConsumer takes a Lease&");
    if (!call.too_late.empty()) keep.exchange_->refuse_if_new(impl_->bad_request(400, bad_key, call.too_late));
    return keep.exchange_->answer(impl_->transactions()->consume(call.message, handler), request);
  } catch (...) {
    return impl_->failed(std::current_exception(), request);
  }
}

Response Guard::handle_under_lease(const Request& request, const std::function<Response(Lease&)>& handler) {
  auto asked = call_or_answer(*impl_, request);
  if (auto* answer = std::get_if<Response>(&asked)) return std::move(*answer);
  const Call& call = std::get<Call>(asked);
  Exchange exchange(*impl_);
  try {
    if (impl_->leases() == nullptr) refuse("a handler of a Guard on a TxConsumer takes a connection, not a Lease&");
    if (!call.too_late.empty()) exchange.refuse_if_new(impl_->bad_request(400, bad_key, call.too_late));
    return exchange.answer(
        impl_->leases()->consume(call.message,
                                 [&](Lease& lease) { exchange.run(lease.delivery(), [&] { return handler(lease); }); }),
        request);
  } catch (...) {
    return impl_->failed(std::current_exception(), request);
  }
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
