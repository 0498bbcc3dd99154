#pragma once

/// @file
/// Listeners, and the events and scopes that they get.

#include <chrono>
#include <concepts>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

struct OutgoingMessage;
struct PublishResult;
struct SourceEvent;
struct SourceStatus;

/// The type of an event of a delivery or a purge. Later versions may add types.
enum class EventType {
  consumed,          ///< The transaction committed.
  already_consumed,  ///< The delivery is a duplicate. `age` is the age of the original.
  conflict,          ///< The key came with other content. The handler did not run.
  in_progress,       ///< Another delivery of the key is running. See `Outcome::in_progress`.
  parked,            ///< The message is parked or torn, because of this delivery (then with `error`) or an earlier one.
  retry,             ///< A transient error occurred. The transaction runs again after `backoff`.
  torn,              ///< The handler itself committed the transaction that txinbox opened. The claim is marked torn, so
                     ///< that later deliveries do not count as duplicates.
  failed,     ///< A delivery, a whole batch or a purge failed with `error`. If the failure parks the message, the
              ///< event is `parked` instead.
  discarded,  ///< An operator has discarded the message. The handler did not run.
  postponed,  ///< The handler asked for a later delivery.
  lease_taken_over,  ///< The lease of another worker had expired, and this delivery took the key over.
  purged,            ///< A batch of `rows` old rows was removed.
};

/// The name of the enumerator, such as "consumed".
std::string_view to_string(EventType) noexcept;

/// One thing that happened to a delivery or in a purge. It is valid only during the call.
struct Event {
  EventType type;                        ///< It says which of the other members have a value.
  std::string_view consumer = {};        ///< The consumer's name; empty for a purge of all consumers.
  std::string_view business_key = {};    ///< It can be personal data: be careful what you log. Empty if the event
                                         ///< concerns a whole batch or a purge.
  std::string_view message_id = {};      ///< The broker's id; empty if none was given. Empty also for torn and
                                         ///< lease_taken_over in a batch.
  int attempt = 1;                       ///< The number of the run within this call; 1 is the first.
  std::chrono::nanoseconds duration{0};  ///< Since `consume` or `consume_batch` was called. For purged: the time of the
                                         ///< batch.
  std::exception_ptr error = {};  ///< For retry and failed; for parked if this delivery has failed; for postponed only
                                  ///< in a batch or under a lease. The text of a SOCI error holds bound values.
  std::chrono::milliseconds backoff{0};  ///< For retry: the wait before the next run.
  std::string_view error_class = {};  ///< The result of `txinbox::error_class` for `error`; empty if there is no error.
                                      ///< It can say more than the handler's exception: the error of its connection, or
                                      ///< connection_lost if the connection could not roll back.
  std::optional<std::chrono::milliseconds> age = {};  ///< For already_consumed: the time since the original was
                                                      ///< consumed. None if the cache of recent keys answered, or if
                                                      ///< the original is in the same batch.
  std::size_t rows = 0;                               ///< For purged: how many rows were removed.
};

/// The type of an event in `run`. Later versions may add types.
enum class RunEventType {
  acknowledged,        ///< `count` messages were acknowledged at the broker.
  retry,               ///< A message failed, is in progress elsewhere or was postponed. It runs again after `backoff`.
  dead_letter,         ///< The broker has confirmed a dead letter, or `RunOptions::dead_letter` has taken it.
  dead_letter_failed,  ///< A dead letter was not confirmed. It is tried again after `backoff`.
  unavailable,         ///< The database cannot be used now. Nothing runs for `backoff`.
  dropped,             ///< `count` messages were forgotten, because the broker has taken them back.
  source,              ///< `source_event` happened.
  status,              ///< `status` is the state of the source; it comes every `RunOptions::status_interval`.
  tripped,             ///< The handler has failed for many keys in a row: `RunOptions::breaker`. After `backoff`, one
                       ///< message at a time shows whether the handler works again.
  resumed,             ///< After tripped: the handler has consumed a message, or `run` ends.
  paused,              ///< `pause_consumer` has paused the consumer. Nothing begins.
  unpaused,            ///< After paused: `resume_consumer` was called, the pause is over, or `run` ends.
  held,                ///< A message is parked, and keeps its place until an operator has decided:
                       ///< `RunOptions::hold_parked`. It comes again if the message is parked again, and if the broker
                       ///< delivers it again.
};

/// The name of the enumerator, such as "acknowledged".
std::string_view to_string(RunEventType) noexcept;

/// One thing that happened in `run`. It is valid only during the call.
struct RunEvent {
  RunEventType type;                     ///< It says which of the other members have a value.
  std::string_view source = {};          ///< `SourceStatus::name`.
  std::string_view consumer = {};        ///< The name of the consumer.
  std::size_t count = 0;                 ///< For acknowledged and dropped: how many messages.
  std::string_view business_key = {};    ///< The business key of the message. It can be personal data: be careful what
                                         ///< you log.
  std::string_view message_id = {};      ///< `Incoming::id`. It can have any bytes: escape them in a log.
  std::string_view reason = {};          ///< For dead_letter and dead_letter_failed: the same as `DeadLetter::reason`.
  std::exception_ptr error = {};         ///< For retry, unavailable, tripped, held and dead letters: what was thrown;
                                         ///< null if nothing was.
  std::string_view error_class = {};     ///< As `Event::error_class`.
  std::chrono::milliseconds backoff{0};  ///< The wait before the next try.
  const SourceEvent* source_event = nullptr;  ///< For source: what happened to the source.
  const SourceStatus* status = nullptr;       ///< For status: the state of the source.
};

/// The type of an event in an `OutboxRelay`. Later versions may add types.
enum class RelayEventType {
  published,  ///< The broker confirmed `messages` messages, and the relay has removed their rows.
  failed,     ///< A message was not confirmed: `id`, `attempts`, `text`. The relay will publish it again.
  parked,     ///< The relay parked a message: `id`, `attempts`, `text`.
  error,      ///< The publisher threw, or the database failed: `error`. The relay continues, after a wait if it must.
  parts,      ///< The relay now publishes `parts` of the 64 parts.
};

/// The name of the enumerator, such as "published".
std::string_view to_string(RelayEventType) noexcept;

/// One thing that happened in a relay. It is valid only during the call.
struct RelayEvent {
  RelayEventType type;                   ///< It says which of the other members have a value.
  std::size_t messages = 0;              ///< For published: how many messages.
  std::string_view id = {};              ///< For failed and parked: the message's id.
  int attempts = 0;                      ///< For failed and parked: how often the message was not confirmed.
  std::string_view text = {};            ///< For failed and parked: the error text of the publisher.
  std::exception_ptr error = {};         ///< For error: what was thrown.
  std::size_t parts = 0;                 ///< For parts: how many parts the relay publishes.
  std::chrono::nanoseconds duration{0};  ///< For published: the time from reading the rows to removing them.
};

/// One call of a relay's publisher. It is valid only during the call of the listener.
struct Publication {
  std::span<const OutgoingMessage> messages;      ///< The messages that the publisher got.
  std::span<const PublishResult> results;         ///< One for each message. Empty if the publisher threw, or if it has
                                                  ///< returned another number of results.
  std::exception_ptr error = {};                  ///< The exception of the publisher. Null if it returned.
  std::chrono::system_clock::time_point started;  ///< When the publisher was called.
  std::chrono::nanoseconds duration{0};           ///< How long it took.
};

/// A part of a delivery that takes time.
enum class ScopeKind {
  consume,  ///< One call of `consume` or `consume_batch`. With `count_starts`, a batch is one scope for each message.
  attempt,  ///< One run of the transaction. Under a lease: from the granted lease to its completion or release.
  handler,  ///< One call of a handler.
};

/// The name of the enumerator, such as "consume".
std::string_view to_string(ScopeKind) noexcept;

/// One part of a delivery, as a `Listener` gets it. It is valid only during the call, but the messages exist until the
/// scope has ended.
struct Scope {
  ScopeKind kind;                     ///< The part of the delivery.
  std::string_view consumer;          ///< The name of the consumer.
  std::span<const Message> messages;  ///< For handler: the message of the handler. Otherwise: all messages of the call.
                                      ///< `Message::incoming` has the broker's delivery, with its headers.
  int attempt = 1;                    ///< The number of the run within this call. For consume: 1.
};

/// A listener learns what txinbox does: the events of consumers, purges, `run` and relays, and when the parts of a
/// delivery begin and end. It is for logs, metrics and tracing. Derive a class from it and override what you need, or
/// make one of a function with `on_event`. `Metrics` is a listener.
///
///     class Tracer : public txinbox::Listener {
///       void on_begin(const txinbox::Scope&) override;
///       void on_end(const txinbox::Scope&, const std::exception_ptr& error) override;
///     };
///     txinbox::TxConsumer consumer(pool, "order-service", {.listeners = {std::make_shared<Tracer>()}});
///
/// txinbox calls a listener for an event after the event has happened, on the thread that works. At that time it has no
/// transaction open and holds no connection of the pool. It ignores what a listener throws.
///
/// Scopes nest: a call contains its attempts, and an attempt contains its handlers. `on_begin` and `on_end` of one
/// scope run on the same thread, so a thread-local stack can hold the open spans. With a `TxConsumer`, the transaction
/// is open while `on_begin` and `on_end` of a handler run: return soon, and do not use the pool.
///
/// @threads consumers and relays on several threads call one listener at the same time.
class Listener {
 public:
  virtual ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// It is called when a scope begins, on the thread that runs the scope.
  virtual void on_begin(const Scope&) {}

  /// It is called when a scope has ended, on the same thread. `error` is the exception that ended the scope. It is null
  /// if the scope ended normally, also by `Delivery::refuse`. A call that returns a `failed` or `parked` result has
  /// ended normally: the event of that result has the error.
  virtual void on_end(const Scope&, const std::exception_ptr& /*error*/) {}

  /// It is called for each event of a consumer or a purge. The scope of the call has not ended then.
  virtual void on_event(const Event&) {}

  /// It is called for each event of `run`, on the thread that called `run`.
  virtual void on_run_event(const RunEvent&) {}

  /// It is called for each event of an `OutboxRelay`, on the relay's thread.
  virtual void on_relay_event(const RelayEvent&) {}

  /// It is called when a handler adds a message to the outbox, on the handler's thread, in the handler's scope. The
  /// message has its id. The listener may change the headers with which the message goes out, for example to set
  /// `traceparent`. They are those of the message, with the trace context of the delivery
  /// (`ConsumerOptions::forward_trace_context`). If it throws, its changes are dropped. If the headers then break the
  /// limits of `OutgoingMessage`, the changes of all listeners are dropped.
  virtual void on_outgoing(const OutgoingMessage&, std::map<std::string, std::string>& /*headers*/) {}

  /// It is called after each call of a relay's publisher, on the relay's thread. The relay removes the rows of the
  /// published messages after it, so return soon.
  virtual void on_publish(const Publication&) {}

 protected:
  Listener() = default;
};

/// Listeners, in the order in which they are called; `on_end` is called in the reverse order. None may be null.
using Listeners = std::vector<std::shared_ptr<Listener>>;

/// @cond
namespace detail {

template <class F>
class FunctionListener final : public Listener {
 public:
  explicit FunctionListener(F function) : function_(std::move(function)) {}

 private:
  void on_event(const Event& event) override { pass(event); }
  void on_run_event(const RunEvent& event) override { pass(event); }
  void on_relay_event(const RelayEvent& event) override { pass(event); }

  template <class AnyEvent>
  void pass(const AnyEvent& event) {
    if constexpr (std::invocable<F&, const AnyEvent&>) function_(event);
  }

  F function_;
};

}  // namespace detail
/// @endcond

/// Makes a listener of a function that takes an `Event`, a `RunEvent` or a `RelayEvent`.
///
///     auto log = txinbox::on_event([](const txinbox::Event& event) { std::clog << to_string(event.type) << '\n'; });
///     txinbox::TxConsumer consumer(pool, "order-service", {.listeners = {log}});
///
/// Of an empty `std::function` it makes null. Whoever gets null in `Listeners` throws `Error` invalid_argument. A
/// function with a parameter `const auto&` must compile for all three events: name the type of the event.
///
/// @threads as `Listener`: several threads may call the function at the same time.
template <class F>
requires(std::invocable<F&, const Event&> || std::invocable<F&, const RunEvent&> ||
         std::invocable<F&, const RelayEvent&>) std::shared_ptr<Listener> on_event(F function) {
  if constexpr (std::is_pointer_v<F> || requires { function.operator bool(); }) {
    if (!function) return nullptr;
  }
  return std::make_shared<detail::FunctionListener<F>>(std::move(function));
}

TXINBOX_API_END
}  // namespace txinbox
