#pragma once

/// @file
/// Seeing the parts of a delivery begin and end.

#include <exception>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <txinbox/event.hpp>
#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// A part of a delivery that takes time.
enum class ScopeKind {
  consume,  ///< One call of `consume` or `consume_batch`. With `count_starts`, a batch is one scope for each message.
  attempt,  ///< One run of the transaction. Under a lease: from the granted lease to its completion or release.
  handler,  ///< One call of a handler.
};

/// The name of the enumerator, such as "consume".
std::string_view to_string(ScopeKind) noexcept;

/// One part of a delivery, as a `Listener` sees it. It is valid only during the call.
struct Scope {
  ScopeKind kind;                     ///< Which part of the delivery it is.
  std::string_view consumer;          ///< The name of the consumer.
  std::span<const Message> messages;  ///< For handler: its message. Otherwise: all messages of the call.
  int attempt = 1;                    ///< The run within this call. For consume: 1.
};

/// Sees the parts of deliveries begin and end, for tracing and for timing. Derive from it and override what you need.
///
///     class Tracer : public txinbox::Listener {
///       void on_begin(const txinbox::Scope&) override;
///       void on_end(const txinbox::Scope&, const std::exception_ptr& error) override;
///     };
///     txinbox::TxConsumer consumer(pool, "order-service", {.listeners = {std::make_shared<Tracer>()}});
///
/// Scopes nest: a call contains its attempts, and an attempt contains its handlers. `on_begin` and `on_end` of one
/// scope run on the same thread, so a thread-local stack can hold the open spans. What a listener throws is ignored.
///
/// With a `TxConsumer`, the transaction is open during a handler's `on_begin` and `on_end`: return soon, and do not use
/// the pool. During all other calls txinbox has no transaction open and holds no connection.
///
/// @threads consumers on several threads call one listener at the same time.
class Listener {
 public:
  virtual ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// A scope begins, on the thread that runs it.
  virtual void on_begin(const Scope&) {}

  /// A scope has ended, on the same thread. `error`: what ended it; null if it ended normally. A call that ends with a
  /// `failed` or `parked` result has ended normally; its event has the error.
  virtual void on_end(const Scope&, const std::exception_ptr& /*error*/) {}

  /// As `TxConsumerOptions::observer`. It is called inside the scope of the call.
  virtual void on_event(const Event&) {}

 protected:
  Listener() = default;
};

/// Listeners, none of them null, in the order in which they hear of a begin. They hear of an end in the reverse order.
using Listeners = std::vector<std::shared_ptr<Listener>>;

TXINBOX_NAMESPACE_END
}  // namespace txinbox
