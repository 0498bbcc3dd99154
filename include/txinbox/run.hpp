#pragma once

/// @file
/// Consumes the messages of a broker: the loop between a `Source` and a consumer.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include <txinbox/handler.hpp>
#include <txinbox/listener.hpp>
#include <txinbox/message_of.hpp>
#include <txinbox/result.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

class LeaseConsumer;
class TxConsumer;

/// Which messages keep their order.
enum class Ordering {
  lane,  ///< The messages of one lane run in their order. At most one worker at a time has messages of a lane.
  key,   ///< The messages of one lane with the same `Incoming::key` run in their order. Those without a key have no
         ///< order.
};

/// The name of the enumerator, such as "lane".
std::string_view to_string(Ordering) noexcept;

/// When `run` stops counting failures, because the handler fails for all messages and not for some of them.
struct BreakerOptions {
  /// If the handler has failed for so many different business keys, and has consumed no message since the first of
  /// these failures, the breaker trips. 0: never. It is at most half of `RunOptions::max_in_flight`; if that would be
  /// less than 8 and less than this number, the breaker is off.
  std::size_t failures = 20;

  /// After the breaker has tripped, only probes run: one message at a time. This is the wait before the first ones. It
  /// doubles with each round of probes that fail.
  std::chrono::milliseconds pause{5'000};
  std::chrono::milliseconds max_pause{300'000};  ///< The longest wait, at most a day.
};

/// How `run` consumes.
struct RunOptions {
  /// The most messages that one transaction takes. A batch takes what is there, and does not wait for more. With 1 each
  /// message has a transaction of its own. A `LeaseConsumer` has no batches.
  std::size_t batch = 100;

  /// How many threads run handlers. Each has a connection of the consumer's pool. A consumer on a caller's connection
  /// can have only one. `run` polls the broker on the thread that calls it.
  std::size_t workers = 1;

  /// Which messages keep their order, if several workers run them, and if one of them fails. Later messages in this
  /// order wait for a message that fails, until it has failed `ConsumerOptions::max_attempts` times. Other messages do
  /// not wait.
  Ordering order = Ordering::lane;

  /// A message that is parked, now or earlier, keeps its place in its order until an operator has decided. It is not
  /// acknowledged, and becomes no dead letter. Later messages in this order wait. After `retry_failed` it runs again,
  /// after `discard_failed` the next one runs.
  ///
  /// `run` looks for the decision after `backoff`, later after up to `max_backoff`. As long as a message is held,
  /// `idle_exit` does not end `run`. The breaker does not protect these messages: their failures count at once, because
  /// parking loses nothing. A message without an order (`Incoming::lane` or, with `Ordering::key`, `Incoming::key` is
  /// none) becomes a dead letter, and so does one that cannot be parked: a conflict, or a message without a valid key.
  /// docs/guides/failed-messages.md says what this costs on each broker.
  bool hold_parked = false;

  /// The most messages that `run` holds: those that run, wait for their turn, or wait for an earlier message of their
  /// lane to be acknowledged. 0: four batches for each worker, and at least 16.
  ///
  /// These messages count for `max_waiting`, and not here. So they keep no others waiting:
  /// - A message without a lane that waits for another try.
  /// - All messages of a paused lane. When more than half of `max_in_flight` is used, `run` pauses lanes whose first
  ///   message waits for another try, or has run for 100 ms while a worker was free.
  std::size_t max_in_flight = 0;

  /// The most bytes of bodies that `run` holds, as `max_in_flight`. The messages of one poll may exceed it.
  std::size_t max_in_flight_bytes = 64UL * 1024 * 1024;

  /// The most messages that `run` holds besides: those without a lane that wait for another try, and those of paused
  /// lanes. What exceeds it counts for `max_in_flight`. If a source can read a lane again, as Kafka's can, `run`
  /// forgets messages of paused lanes before this happens, except for the first one: those that have not begun to run,
  /// those that wait for another try, and those that are done. The inbox answers the latter when they come again.
  std::size_t max_waiting = 10'000;

  /// The most bytes of bodies that `run` holds besides, as `max_waiting`.
  std::size_t max_waiting_bytes = 64UL * 1024 * 1024;

  /// The wait before a message that failed runs again. It doubles with each failure of the message, up to
  /// `max_backoff`, and a random part of up to one half is taken off. A postponed message waits as long as it asked.
  /// While the database cannot be used, everything waits in this way, but at most 5 s at a time.
  std::chrono::milliseconds backoff{200};
  std::chrono::milliseconds max_backoff{30'000};  ///< The longest wait, at most 100,000 days.

  /// Protects the messages from a handler that fails for all of them, for example after a bad deployment. It has an
  /// effect only if the consumer has `max_attempts`: otherwise no failure makes a dead letter.
  ///
  /// While it is not known whether the handler works, `run` decides later whether a failure counts. It counts when the
  /// handler has consumed another message, or when no other message is there that could show this. Until then, the
  /// failure is not in the database, and the handler may run more than `max_attempts` times for the message. If the
  /// breaker trips, these failures never count: the messages run again when the handler works. A message that the
  /// handler refuses for good (`Error` rejected, unreadable, invalid_key, invalid_message, result_too_large) is a dead
  /// letter at once. docs/guides/bad-deployment.md has the limits.
  BreakerOptions breaker = {};

  /// `run` returns when for this time no message has come, and `run` has held none. None: never. At most 100,000 days.
  ///
  /// The time counts only while the source is connected and `SourceStatus::at_end` is not false. `run` also returns if
  /// for this time, and for at least 30 s, no message has come although the source was not connected or not at its end.
  /// `RunSummary::end` says which of these it was.
  std::optional<std::chrono::milliseconds> idle_exit = {};

  /// How often the listeners of the consumer get a `status` event (`RunEvent`). At most 100,000 days.
  std::chrono::milliseconds status_interval{10'000};

  /// Takes a dead letter instead of the source's dead-letter queue, for example into a table or a file. When it
  /// returns, the message is acknowledged. If it throws, it is called again later.
  std::function<void(const DeadLetter&)> dead_letter = {};
};

/// Why `run` has returned.
enum class RunEnd {
  stopped,      ///< The stop token of the consumer was set.
  idle,         ///< For the time of `idle_exit` no message came, and the source knew of none.
  unreachable,  ///< For the time of `idle_exit` there was no connection to the broker. Messages may wait there.
  not_at_end,   ///< For the time of `idle_exit` no message came although some wait at the broker: it has not given the
                ///< source its lanes, or the client cannot read the messages.
};

/// The name of the enumerator, such as "idle".
std::string_view to_string(RunEnd) noexcept;

/// The counts of a call of `run`, and the reason for its end.
struct RunSummary {
  std::uint64_t received = 0;          ///< Deliveries of the broker.
  std::uint64_t consumed = 0;          ///< Messages whose handlers ran and committed.
  std::uint64_t already_consumed = 0;  ///< Duplicates.
  std::uint64_t discarded = 0;         ///< Messages that an operator had discarded.
  std::uint64_t dead_letters = 0;      ///< Confirmed dead letters, but not those that the source publishes by itself
                                       ///< (`RabbitMqOptions::delivery_limit`).
  std::uint64_t retries = 0;           ///< How often a message had to run again.
  std::uint64_t acknowledged = 0;      ///< Messages that were acknowledged at the broker.
  std::uint64_t dropped = 0;           ///< Messages that were forgotten, because the broker has taken them back.
  RunEnd end = RunEnd::stopped;        ///< Why `run` has returned.
};

/// Consumes the messages of `source` until `ConsumerOptions::stop` is set, or the source is idle for `idle_exit`. After
/// the stop, no new batch begins. Batches that run are finished and acknowledged, then `run` returns.
///
/// For each message it makes a `Message`, consumes it, and acknowledges it at the broker if `action_for` says so. A
/// message is acknowledged only after the transaction of its handler has committed, or after the broker has confirmed
/// its dead letter, and after all earlier messages of its lane. So a crash at any time causes
/// duplicates, which the inbox answers, and never a loss.
///
/// - `redeliver`: the message stays here and runs again after a wait. Its lane also waits (`Ordering`), but other lanes
///   do not. `run` still polls the broker, so the broker does not take the messages back.
/// - `dead_letter`: the message goes to the dead-letter queue. Its lane does not wait.
/// - `stop`: `run` ends, and throws the error.
/// - If the database cannot be used, everything waits and nothing is lost. After an error of the environment, such as a
///   full disk, this is the same.
///
/// It takes the same handlers as `TxConsumer::consume_batch`. A handler gets the broker's delivery with
/// `Delivery::incoming`. The listeners of the consumer also get the events of `run` (`RunEvent`).
///
/// @errors  what somebody must fix:
/// - `Error` with a code for which `action_for` says `stop`: a missing schema, a wrong password.
/// - `Error` broker_refused or access_refused of the source.
/// - `Error` invalid_argument if the source has no dead-letter queue and `RunOptions::dead_letter` is not set; if an
///   option is not valid; if a function is empty.
/// - `std::bad_alloc` from the function that makes a `Message`.
/// @blocking until the end. After the stop token is set: as long as the handlers that run, and a few seconds for the
///           broker.
/// @threads the source, and a consumer on a caller's connection, belong to `run` until it returns. A consumer on a pool
///          may be used by other threads, too.
/// @return what was done. The source is closed.
RunSummary run(Source& source, TxConsumer& consumer, const MessageOf& message_of, const BatchHandlers& handlers,
               const RunOptions& options = {});

/// Does the same under leases, for handlers whose work cannot be in one transaction. Each worker runs one message at a
/// time. If another process works on a message, `run` tries the message again after `Result::retry_after`, but not
/// before the wait of `RunOptions::backoff` is over.
RunSummary run(Source& source, LeaseConsumer& consumer, const MessageOf& message_of, const LeaseHandler& handler,
               const RunOptions& options = {});

TXINBOX_API_END
}  // namespace txinbox
