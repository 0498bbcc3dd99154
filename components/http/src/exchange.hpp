#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include <txinbox/http.hpp>
#include <txinbox/result.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http::detail {

/// The answer that the consumer stores for a request.
struct Kept {
  std::string answer;       ///< As `stored_form` makes it.
  bool rolls_back = false;  ///< The handler's SQL is rolled back: the delivery refuses the message.
};

/// One request from its claim to its answer. The rules:
///
/// - A run of the handler drops the answer of the run before it.
/// - An answer is kept in the handler's transaction, or the transaction is rolled back. A server error (500 to 599) is
///   kept only under a lease, and only if the options ask for it.
/// - The client gets the handler's answer only if the consumer says that the message is consumed, or if it is a server
///   error that is not kept.
/// - If the consumer says that the message was consumed before, the client gets what was kept then.
///
/// It has no database, no connection and no clock, so a test can try every order of events.
class Exchange {
 public:
  /// `options` must outlive it. `max_result` is the consumer's.
  Exchange(const GuardOptions& options, bool under_lease, std::size_t max_result)
      : options_(options), under_lease_(under_lease), max_result_(max_result) {}

  /// Runs the handler for a claim that is new. The consumer may call it several times, if it rolls back what the run
  /// before has done.
  ///
  /// Errors: `RetryLater` if the answer is not kept. What the handler throws, except `Refusal`. `Error`
  /// invalid_argument for an answer that cannot be stored.
  Kept run(const std::function<Response()>& handler);

  /// Lets the consumer consume the request, and returns the answer for the client. `consume` calls `run` if the claim
  /// is new. With a text in `too_late`, a new claim gets 400 with this text, and the handler does not run.
  ///
  /// Errors: none. Each error is an answer.
  Response answer(const Request&, const std::string& too_late, const std::function<Result()>& consume) noexcept;

 private:
  std::string kept_form() const;
  Response answer_to(Result&&, const Request&);

  const GuardOptions& options_;
  const bool under_lease_;
  const std::size_t max_result_;
  std::string too_late_;
  std::optional<Response> answer_;  ///< The answer of the handler's last run, with all its header fields.
};

}  // namespace http::detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
