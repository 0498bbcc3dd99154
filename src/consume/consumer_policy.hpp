#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <txinbox/error.hpp>
#include <txinbox/listener.hpp>
#include <txinbox/result.hpp>
#include <txinbox/tx_consumer.hpp>
#include <txinbox/version.hpp>

#include "backend/failure.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// When a failure of a message is counted.
enum class Counting {
  at_once,  ///< The delivery counts it, and parks the message if it has failed too often.
  later,  ///< The caller decides later whether it counts. But the failure of a dead letter, such as a message that the
          ///< handler has rejected, is counted at once.
  never,  ///< The handler did not run, so the message is not the cause.
};

/// The results of a batch, with what a caller must know that counts failures later.
struct BatchResults {
  std::vector<Result> results = {};
  std::vector<std::size_t> failed_before_handler = {};  ///< Which messages failed although their handler did not run.
};

/// The options of a consumer, and what they say about its deliveries. It needs no database.
struct ConsumerPolicy {
  const std::string consumer;
  const ConsumerOptions options;

  /// Errors: `Error` invalid_key, or invalid_argument for the options.
  ConsumerPolicy(std::string consumer, ConsumerOptions options);

  /// Throws if the stop token is set.
  ///
  /// Errors: `Error` stopped.
  void refuse_when_stopped() const;

  /// Whether the options declare this error of a handler transient.
  bool is_declared_transient(const std::exception_ptr& error) const noexcept;

  /// Whether the delivery counts this error as a failure of its message.
  bool counts(const Failure&, Counting) const noexcept;

  /// Whether a message with this many failures must be parked.
  bool exceeds_max_attempts(int attempts) const noexcept;

  /// Passes the event to the listeners, and ignores what they throw.
  void notify(Event) const noexcept;

  /// The scope of one part of a delivery, for the listeners.
  Scope scope(ScopeKind kind, std::span<const Message> messages, int attempt = 1) const noexcept {
    return {kind, consumer, messages, attempt};
  }
};

/// Errors: `Error` invalid_argument.
template <class AnyHandler>
void refuse_empty(const AnyHandler& handler) {
  if (!handler) throw Error(ErrorCode::invalid_argument, "the handler is empty; give one that can be called");
}

/// Whether this error means that the handler cannot process the message.
///
/// It is false if the message is not the cause: for a transient error, an error of the environment, a stop, a request
/// for a later delivery, and a set-up that must be fixed.
bool is_caused_by_message(const Failure&) noexcept;

/// Returns the result if the handler has asked for a later delivery; none for another error.
std::optional<Result> postponed_by(const std::exception_ptr& error) noexcept;

/// Returns the result of a message whose delivery ended with this error.
Result failed_with(std::exception_ptr error) noexcept;

/// These functions convert a claim to its outcome, and an outcome to its event.
Outcome outcome_for(Claim) noexcept;
EventType event_for(Outcome) noexcept;

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
