// Every order of what can happen to two requests with one key and to a copy after them. A small consumer in this file
// follows the rules of TxConsumer and of LeaseConsumer, so that no server and no time is needed.

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <txinbox/error.hpp>
#include <txinbox/http.hpp>

#include "exchange.hpp"
#include "service.hpp"
#include "stored_response.hpp"

namespace txinbox::test {
namespace {

using http::GuardOptions;
using http::Refusal;
using http::Request;
using http::Response;
using http::detail::Exchange;
using http::detail::Kept;

/// The act of the handler.
enum class Does { answers, answers_much, refuses, answers_5xx, throws, postpones };

/// The fate of the transaction, or of the completion of the lease, when the handler has run.
enum class Fate {
  kept,
  tried_again,  ///< It failed and was rolled back, and the consumer runs the handler again.
  put_off,      ///< It failed and was rolled back, and the handler throws RetryLater when it runs again.
  undone,       ///< It failed and was rolled back, and the consumer gives up.
  unknown,      ///< It was done, and the consumer cannot find out.
  overtaken,    ///< Another request was done instead, and the consumer finds it. Its answer is "other".
};

/// The key of the request.
enum class Key { fresh, too_late, of_another };

constexpr std::array all_does = {Does::answers,     Does::answers_much, Does::refuses,
                                 Does::answers_5xx, Does::throws,       Does::postpones};
constexpr std::array all_fates = {Fate::kept,   Fate::tried_again, Fate::put_off,
                                  Fate::undone, Fate::unknown,     Fate::overtaken};
constexpr std::array all_keys = {Key::fresh, Key::too_late, Key::of_another};

struct Try {
  Does does = Does::answers;
  Fate fate = Fate::kept;
  Key key = Key::fresh;
};

/// For the report of a failed check: the numbers of the enumerators.
doctest::String toString(Try one) {
  const auto number = [](auto value) { return std::to_string(static_cast<int>(value)); };
  return ("Does " + number(one.does) + ", Fate " + number(one.fate) + ", Key " + number(one.key)).c_str();
}

struct Settings {
  bool under_lease = false, keep_head = false, keep_server_errors = false;
};

/// One key, its row, and the checks of what clients get.
class OneKey {
 public:
  static constexpr std::size_t max_result = 400;

  explicit OneKey(Settings settings) : settings_(settings) {
    options_.keep_head = settings.keep_head;
    options_.keep_server_errors = settings.keep_server_errors;
    options_.on_error = [this](const std::exception_ptr&, const Request&) { ++errors_; };
  }

  /// Sends one request, and checks its answer. Returns what is wrong. Empty if nothing is.
  std::string send(Try one) {
    const std::optional<Row> before = row_;
    const int runs_before = runs_;
    errors_ = 0;
    postponed_ = false;
    Exchange exchange(options_, settings_.under_lease, max_result);
    const Response response = exchange.answer({}, one.key == Key::too_late ? "the token is over" : "",
                                              [&] { return consume(exchange, one); });
    if (before) return runs_ != runs_before ? "the handler ran again" : wrong_with_later(*before, one, response);
    if (one.key == Key::too_late && runs_ != runs_before) return "the handler ran too late";
    return wrong_with_first(one, response);
  }

  /// The row is purged, or `valid_for` is over.
  void expire() { row_.reset(); }

 private:
  /// A committed row of the key.
  struct Row {
    std::string content, stored;
    Response answer = {};      ///< The answer that the first client was to get.
    bool rolled_back = false;  ///< The handler's SQL was.
  };

  static constexpr std::string_view content_of(Key key) { return key == Key::of_another ? "another" : "same"; }

  static bool has_run(const Response& response) { return response.body.starts_with("run "); }

  Response handler(Does does) {
    last_ = {.status = 201, .headers = {{"Location", "/orders/1"}, {"Set-Cookie", "sid=1"}}};
    last_.body = "run " + std::to_string(++runs_);
    switch (does) {
      case Does::answers:
        break;
      case Does::answers_much:
        last_.body.append(2 * max_result, '.');
        break;
      case Does::refuses:
        last_.status = 503;  // legal, and the hardest to tell from an answer whose SQL was rolled back
        throw Refusal(last_);
      case Does::answers_5xx:
        last_.status = 502;
        break;
      case Does::throws:
        throw std::runtime_error("the handler fails");
      case Does::postpones:
        postponed_ = true;
        throw RetryLater(std::chrono::seconds(1), "not now");
    }
    return last_;
  }

  Result consume(Exchange& exchange, Try one) {
    const std::string content(content_of(one.key));
    if (row_ && row_->content != content) return {.outcome = Outcome::conflict};
    if (row_) return {.outcome = Outcome::already_consumed, .stored = row_->stored};
    Kept kept;
    try {
      kept = exchange.run([&] { return handler(one.does); });
    } catch (const RetryLater& later) {
      return {.outcome = Outcome::postponed, .error = std::current_exception(), .retry_after = later.delay()};
    }
    if (kept.answer.size() > max_result) throw Error(ErrorCode::result_too_large, "the answer is too large");
    const Row row{content, kept.answer, last_, kept.rolls_back};
    switch (one.fate) {
      case Fate::tried_again:
        return consume(exchange, {.does = one.does, .key = one.key});
      case Fate::put_off:
        return consume(exchange, {.does = Does::postpones, .key = one.key});
      case Fate::kept:
        row_ = row;
        return {.outcome = Outcome::consumed, .stored = kept.answer, .refused = kept.rolls_back};
      case Fate::undone:
        throw Error(ErrorCode::transaction_lost, "the transaction was lost");
      case Fate::unknown:
        row_ = row;
        throw Error(ErrorCode::unknown_state, "nobody knows");
      case Fate::overtaken:
        break;
    }
    const Response other{.status = 200, .body = "other"};
    row_ = {content, http::stored_form(other, {}, true), other};
    return {.outcome = Outcome::already_consumed, .stored = row_->stored};
  }

  /// The answer to a request whose key had a row.
  std::string wrong_with_later(const Row& before, Try one, const Response& response) const {
    if (errors_ != 0) return "an error was reported";
    if (before.content != content_of(one.key)) {
      return response.status == 422 && !has_run(response) ? "" : "not 422";
    }
    return wrong_with_replay(before, response);
  }

  std::string wrong_with_replay(const Row& row, const Response& response) const {
    if (response.status != row.answer.status) return "another status";
    const bool without_body = settings_.keep_head && row.answer.body.size() > max_result;
    if (response.body != (without_body ? "" : row.answer.body)) return "another body";
    if (field(response, "Idempotent-Replayed") != "true") return "it does not say that it is replayed";
    if (field(response, "Set-Cookie") != "-") return "a header field of the first client only";
    if (field(response, "Location") != field(row.answer, "Location")) return "a header field is missing";
    return "";
  }

  /// The answer to a request whose key had no row.
  std::string wrong_with_first(Try one, const Response& response) const {
    if (one.key == Key::too_late)
      return response.status == 400 && !row_ && errors_ == 0 ? "" : "not 400 for a late key";
    const bool of_handler = response.body == last_.body && response.status == last_.status;
    if (one.does == Does::answers_5xx && (!settings_.under_lease || !settings_.keep_server_errors)) {
      if (row_) return "a server error was kept";
      return of_handler && errors_ == 0 ? "" : "not the handler's server error";
    }
    if (!row_) {
      if (postponed_) return response.status == 503 && !has_run(response) && errors_ == 0 ? "" : "not 503";
      return response.status == 500 && errors_ == 1 ? "" : "not 500, or the error was not reported once";
    }
    if (one.fate == Fate::overtaken) return wrong_with_replay(*row_, response);
    if (one.fate == Fate::unknown)
      return response.status == 500 && errors_ == 1 && !has_run(response) ? "" : "an answer without proof";
    if (row_->rolled_back != (one.does == Does::refuses && !settings_.under_lease)) return "SQL that should be undone";
    if (!of_handler || response.headers.size() != last_.headers.size()) return "not the handler's answer";
    return row_->answer.body == response.body && errors_ == 0 ? "" : "not the answer that was kept";
  }

  const Settings settings_;
  GuardOptions options_;
  std::optional<Row> row_;
  Response last_;  ///< The answer of the last run.
  int runs_ = 0, errors_ = 0;
  bool postponed_ = false;  ///< The handler has asked for a later delivery.
};

template <class Use>
void for_each_try(const Use& use) {
  for (const Does does : all_does) {
    for (const Fate fate : all_fates) {
      for (const Key key : all_keys) use(Try{does, fate, key});
    }
  }
}

}  // namespace

TEST_CASE("a request gets only an answer that is kept, and a copy gets the same, whatever happens to two requests") {
  int orders = 0;
  const auto try_two = [&](Settings settings, bool expires, Try first, Try second) {
    OneKey key(settings);
    std::string wrong = key.send(first);
    if (expires) key.expire();
    if (wrong.empty()) wrong = key.send(second);
    if (wrong.empty()) wrong = key.send({});
    ++orders;
    if (wrong.empty()) return;
    CAPTURE(settings.under_lease);
    CAPTURE(settings.keep_head);
    CAPTURE(expires);
    CAPTURE(first);
    CAPTURE(second);
    FAIL_CHECK(wrong);
  };
  for (const Settings settings : {Settings{}, Settings{.keep_head = true}, Settings{.under_lease = true},
                                  Settings{.under_lease = true, .keep_head = true, .keep_server_errors = true}}) {
    for (const bool expires : {false, true}) {
      for_each_try([&](Try first) { for_each_try([&](Try second) { try_two(settings, expires, first, second); }); });
    }
  }
  MESSAGE("count: ", orders, " orders of requests");
}

}  // namespace txinbox::test
