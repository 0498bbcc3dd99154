#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <openssl/rand.h>
#include <txinbox/error.hpp>
#include <txinbox/http.hpp>
#include <txinbox/incoming.hpp>

#include "answers.hpp"
#include "digest.hpp"
#include "exchange.hpp"
#include "shared/ascii.hpp"
#include "shared/utf8.hpp"
#include "stored_response.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

using detail::Exchange;
using detail::Kept;
using std::chrono::seconds;

constexpr std::size_t longest_scope = 120;
constexpr std::size_t longest_business_key = 255;

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

/// Errors: `Error` invalid_key if the key of a client is not valid.
void check_key(const std::string& key, std::size_t longest) {
  const auto refuse_key = [](const std::string& text) { throw Error(ErrorCode::invalid_key, text); };
  if (key.empty()) refuse_key("the key of the request is empty");
  if (key.size() > longest) {
    refuse_key("the key of the request has " + std::to_string(key.size()) + " bytes; it must have at most " +
               std::to_string(longest));
  }
  if (key.find('\0') != std::string::npos) refuse_key("the key of the request holds a NUL character");
  if (!component::is_utf8(key)) refuse_key("the key of the request is not valid UTF-8");
}

/// A unique key for a request without a key.
std::string random_key() {
  std::array<unsigned char, 16> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) refuse("OpenSSL has no random bytes");
  std::string text(bytes.begin(), bytes.end());
  return "without a key " + sha256_hex(text).substr(0, 32);
}

/// A request as a delivery, so that `Outbox::add` in the handler copies its trace context. The names of its header
/// fields are in lower case, because HTTP does not distinguish the case. The request must outlive it.
class DeliveryOfRequest {
 public:
  explicit DeliveryOfRequest(const Request& request) {
    names_.reserve(request.headers.size());  // the views stay valid
    for (const Header& each : request.headers) {
      headers_.push_back({.name = names_.emplace_back(component::lower_case(each.name)), .value = each.value});
    }
    incoming_.body = request.body;
    incoming_.has_body = request.parts.empty();
    incoming_.headers = headers_;
  }
  DeliveryOfRequest(const DeliveryOfRequest&) = delete;
  DeliveryOfRequest& operator=(const DeliveryOfRequest&) = delete;
  ~DeliveryOfRequest() = default;

  const Incoming* incoming() const noexcept { return &incoming_; }

 private:
  std::vector<std::string> names_;
  std::vector<IncomingHeader> headers_;
  Incoming incoming_;
};

/// The call of the consumer for a request.
struct Call {
  Message message;
  std::string too_late = {};  ///< As `RequestKey::too_late`.
};

}  // namespace

/// The settings and functions that all requests of a guard share.
class Guard::Impl {
 public:
  Impl(TxConsumer* transactions, LeaseConsumer* leases, ScopeOf scope, GuardOptions options)
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

  Exchange exchange() const {
    const std::size_t max_result =
        transactions_ != nullptr ? transactions_->options().max_result : leases_->options().max_result;
    return {options_, leases_ != nullptr, max_result};
  }

 private:
  std::string fingerprint_of(const Request& request, const RequestKey& key) const {
    if (options_.fingerprint) return options_.fingerprint(request);
    return key.fingerprint ? *key.fingerprint : whole_request(request);
  }

  TxConsumer* transactions_;
  LeaseConsumer* leases_;
  ScopeOf scope_;
  GuardOptions options_;
};

Guard::Guard(TxConsumer& consumer, ScopeOf scope, GuardOptions options)
    : impl_(std::make_unique<Impl>(&consumer, nullptr, std::move(scope), std::move(options))) {
  if (!consumer.options().claim_wait) {
    refuse(
        "the consumer of a Guard has no ConsumerOptions::claim_wait, so a copy of a running request would wait for "
        "a lock and hold a connection; set it, for example to 0ms");
  }
}

Guard::Guard(LeaseConsumer& consumer, ScopeOf scope, GuardOptions options)
    : impl_(std::make_unique<Impl>(nullptr, &consumer, std::move(scope), std::move(options))) {}

Guard::Guard(Guard&&) noexcept = default;
Guard& Guard::operator=(Guard&&) noexcept = default;
Guard::~Guard() = default;

Guard::Keep::Keep(const Guard& guard) : exchange_(std::make_unique<Exchange>(guard.impl_->exchange())) {}
Guard::Keep::~Keep() = default;

void Guard::Keep::operator()(Delivery& delivery, const std::function<Response()>& handler) const {
  const Kept kept = exchange_->run(handler);
  if (kept.rolls_back) delivery.refuse(kept.answer);
  delivery.store(kept.answer);
}

namespace {

/// Returns the call for a request, or the answer if the request has no valid message.
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
    const bool is_of_client = error.code() == ErrorCode::invalid_key || error.code() == ErrorCode::unreadable;
    if (is_of_client) return bad_key(error.what(), guard.options());
    return failed(std::current_exception(), request, guard.options());
  } catch (...) {
    return failed(std::current_exception(), request, guard.options());
  }
}

}  // namespace

Response Guard::handle_in_transaction(const Request& request, const Keep& keep, const Handler& handler) {
  auto asked = call_or_answer(*impl_, request);
  if (auto* answer = std::get_if<Response>(&asked)) return std::move(*answer);
  Call& call = std::get<Call>(asked);
  const DeliveryOfRequest delivery(request);
  call.message.incoming = delivery.incoming();
  return keep.exchange_->answer(request, call.too_late, [&] {
    if (impl_->transactions() == nullptr) refuse("a handler of a Guard on a LeaseConsumer takes a Lease&");
    return impl_->transactions()->consume(call.message, handler);
  });
}

Response Guard::handle_under_lease(const Request& request, const std::function<Response(Lease&)>& handler) {
  auto asked = call_or_answer(*impl_, request);
  if (auto* answer = std::get_if<Response>(&asked)) return std::move(*answer);
  Call& call = std::get<Call>(asked);
  const DeliveryOfRequest delivery(request);
  call.message.incoming = delivery.incoming();
  Exchange exchange = impl_->exchange();
  const auto keep = [&](Lease& lease) { lease.delivery().store(exchange.run([&] { return handler(lease); }).answer); };
  return exchange.answer(request, call.too_late, [&] {
    if (impl_->leases() == nullptr) refuse("a handler of a Guard on a TxConsumer takes a connection, not a Lease&");
    return impl_->leases()->consume(call.message, keep);
  });
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
