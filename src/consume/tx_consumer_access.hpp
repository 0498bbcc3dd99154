#pragma once

#include <span>
#include <vector>

#include <txinbox/handler.hpp>
#include <txinbox/message.hpp>
#include <txinbox/result.hpp>
#include <txinbox/tx_consumer.hpp>
#include <txinbox/version.hpp>

#include "consume/consumer_policy.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Lets `run` consume without losing what is known about the errors of handlers.
struct TxConsumerAccess {
  /// As `TxConsumer::consume_batch`, but an error in a result can be a `HandlerError`.
  static BatchResults consume_batch(TxConsumer&, std::span<const Message>, const BatchHandlers&, OnFailure, Counting);

  /// Whether the consumer counts this error of a handler as a failure of its message.
  static bool counts(const TxConsumer&, const std::exception_ptr& error);

  /// As `PauseCheck::is_paused`.
  static bool is_paused(TxConsumer&);

  /// As `ConsumerContext::is_parked`.
  static bool is_parked(TxConsumer&, const Message&);

  /// Whether an earlier call has left claims of which it is not known whether they are committed.
  static bool has_undecided_claims(const TxConsumer&) noexcept;

  /// Resolves these claims. The next call would do it, too, but it may come after the claims' lease has ended.
  ///
  /// @blocking like a call of the consumer. It does nothing if the last attempt was less than a second ago.
  static void resolve_undecided_claims(TxConsumer&) noexcept;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
