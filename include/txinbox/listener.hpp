#pragma once

/// @file
/// Lets a program see when the parts of a delivery begin and end.

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

/// One part of a delivery, as a `Listener` gets it. It is valid only during the call.
struct Scope {
  ScopeKind kind;                     ///< The part of the delivery.
  std::string_view consumer;          ///< The name of the consumer.
  std::span<const Message> messages;  ///< For handler: the message of the handler. Otherwise: all messages of the call.
  int attempt = 1;                    ///< The number of the run within this call. For consume: 1.
};

/// A listener is called when parts of deliveries begin and end. It is for tracing and for measuring time. Derive a
/// class from it and override what you need.
///
///     class Tracer : public txinbox::Listener {
///       void on_begin(const txinbox::Scope&) override;
///       void on_end(const txinbox::Scope&, const std::exception_ptr& error) override;
///     };
///     txinbox::TxConsumer consumer(pool, "order-service", {.listeners = {std::make_shared<Tracer>()}});
///
/// Scopes nest: a call contains its attempts, and an attempt contains its handlers. `on_begin` and `on_end` of one
/// scope run on the same thread, so a thread-local stack can hold the open spans. txinbox ignores what a listener
/// throws.
///
/// With a `TxConsumer`, the transaction is open while `on_begin` and `on_end` of a handler run: return soon, and do not
/// use the pool. During all other calls txinbox has no transaction open and holds no connection.
///
/// @threads consumers on several threads call one listener at the same time.
class Listener {
 public:
  virtual ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// It is called when a scope begins, on the thread that runs the scope.
  virtual void on_begin(const Scope&) {}

  /// It is called when a scope has ended, on the same thread. `error` is the exception that ended the scope. It is null
  /// if the scope ended normally. A call that returns a `failed` or `parked` result has ended normally: the event of
  /// that result has the error.
  virtual void on_end(const Scope&, const std::exception_ptr& /*error*/) {}

  /// It is called for each event, as `TxConsumerOptions::observer` is. The scope of the call has not ended then.
  virtual void on_event(const Event&) {}

 protected:
  Listener() = default;
};

/// The listeners of a consumer. None may be null. `on_begin` is called in this order, `on_end` in the reverse order.
using Listeners = std::vector<std::shared_ptr<Listener>>;

TXINBOX_NAMESPACE_END
}  // namespace txinbox
