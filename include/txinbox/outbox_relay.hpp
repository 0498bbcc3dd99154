#pragma once

/// @file
/// Publishes the messages of the outbox.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/listener.hpp>
#include <txinbox/outbox.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

class Pool;

/// How an attempt to publish one message ended.
enum class PublishStatus {
  confirmed,  ///< The broker has stored the message. The relay removes its row.
  failed,     ///< The broker did not accept the message. The relay publishes it again later, with the same id.
  rejected,   ///< The message can never be published. The relay parks it at once.
  postponed,  ///< The publisher did not try the message, or the receiver went away before it answered. The relay
              ///< publishes it later, and counts no attempt. The key waits.
};

/// The name of the enumerator, such as "confirmed".
std::string_view to_string(PublishStatus) noexcept;

/// The result of a publisher for one message.
struct PublishResult {
  PublishStatus status = PublishStatus::confirmed;  ///< It decides what the relay does with the row.
  std::string error = {};  ///< Why the message was not confirmed. The table keeps its first 1,000 bytes.

  /// For failed and postponed: the shortest time that the key waits, for example because the receiver asked for it. It
  /// may be longer than `RelayOptions::max_backoff`. It is only in this relay's memory. At most a day.
  std::chrono::milliseconds retry_after{0};
};

/// Publishes messages. No two of the messages have the same key, so the publisher may publish them in any order.
///
/// Each publisher of txinbox keeps this rule. A publisher of your own should keep it, too:
/// - It returns one result for each message, in the same order.
/// - A message is `confirmed` only if the receiver has said that it holds the message: the relay removes confirmed
///   messages. Silence, a closed connection and an answer that cannot be understood confirm nothing.
/// - What the receiver has confirmed is returned as `confirmed`, also if other messages of the call are not.
/// - A message is `rejected` or `failed` only if the receiver has refused it, or it cannot be carried, or the receiver
///   does not answer for it although it answers other requests after it.
/// - If the receiver goes away or falls silent in a call, the messages without an answer are `postponed`.
/// - If the receiver has answered for no message of a call, for example because it cannot be reached, the call throws.
/// - A header of the message never replaces, repeats or shadows what the publisher writes itself, such as the message
///   id: it gets `header:` before its name, or the message is `rejected`. Otherwise a service that copies the headers
///   of another message would send the id of that message, and the receiver would take it for a duplicate.
/// - A call ends at its time-out, whatever arrives. The time-out should be less than half of `RelayOptions::lease`.
/// - It raises no signal in the process, and what it reads from the receiver uses bounded memory.
/// - An error text can hold what the receiver has sent. So write it to a terminal or a log only with its control
///   characters escaped. The command does this.
///
/// If a call throws, no message of the call counts as published. The relay publishes them again, in calls with half as
/// many messages, until it has found the message for which the publisher throws. A message that is alone in a call that
/// throws counts as failed if other messages were published since it was first in such a call, and if no call with
/// others throws. So if the broker is down, no message counts as failed. The relay waits after the second such call,
/// and twice as long after each further one, up to `RelayOptions::max_backoff`.
using Publisher = std::function<std::vector<PublishResult>(std::span<const OutgoingMessage>)>;

/// How an `OutboxRelay` works.
struct RelayOptions {
  /// How many rows are read and removed at a time, from 1 to 10,000. A read ends earlier after 16 MiB of payloads, with
  /// the message that reaches this limit.
  std::size_t batch = 500;

  /// How long the relay waits after it has read all rows, before it reads again. While it finds no rows, the wait
  /// doubles each time, up to `idle_poll`. At least 1 ms. `OutboxRelay::wake` ends the wait.
  std::chrono::milliseconds poll{100};
  std::chrono::milliseconds idle_poll{1'000};  ///< The longest wait of an idle relay.

  /// The relay usually reads only rows after the last row that it has read. A transaction that commits late can add a
  /// row before that one. To find such rows, the relay lists the earlier rows at this interval, without their payloads.
  /// At least 1 ms. Independent of this, a relay on PostgreSQL reads `pg_locks` about once in a second, while it
  /// publishes many messages. So it knows up to which row no transaction can add a row any more, and does not look for
  /// earlier rows of a key before that row.
  std::chrono::milliseconds sweep{10'000};

  /// For how long the relay owns its parts after its last renewal, from 100 ms to a day. If the relay crashes or hangs,
  /// another relay takes the parts over after this time. A call of the publisher that takes longer can publish messages
  /// that another relay has already published.
  std::chrono::milliseconds lease{30'000};

  /// After this many failed attempts, the relay parks a message and publishes the next message of its key. 0: the relay
  /// never parks a message for this reason, so the key waits until the message can be published.
  int max_attempts = 0;

  /// How long a key waits after one of its messages has failed. The wait doubles with each failure, up to
  /// `max_backoff`. At least 1 ms. Other keys do not wait, however many keys fail.
  std::chrono::milliseconds initial_backoff{1'000};
  std::chrono::milliseconds max_backoff{60'000};  ///< The longest wait of a key, and of the relay after an error.

  /// Once it is set, the relay stops as after `request_stop`.
  std::stop_token stop = {};

  /// They get the relay's events.
  Listeners listeners = {};
};

/// Publishes the messages of the outbox in the background, on a thread of its own.
///
/// It publishes every message at least once, with the same id each time. It publishes the messages of one key in the
/// order of their insertion: it publishes a message for the first time only after all earlier messages of its key were
/// confirmed or parked. The outbox has 64 parts, and all messages of a key are in one part. Any number of relays, in
/// any number of processes, share the parts. Only one relay at a time publishes a part.
///
/// The relay holds no connection while it calls the publisher or a listener, and while it waits.
///
/// @threads   any thread may create and destroy it. The `Pool` object may be moved or destroyed before it.
/// @processes the relay runs only in the parent. A child of fork() may destroy its copy; this does nothing.
class OutboxRelay {
 public:
  /// Starts the thread.
  ///
  /// @errors `Error` invalid_argument for an empty publisher, or an option out of its range. Errors of the database go
  ///         to the listeners.
  OutboxRelay(Pool& pool, Publisher publisher, RelayOptions options = {});

  OutboxRelay(const OutboxRelay&) = delete;
  OutboxRelay& operator=(const OutboxRelay&) = delete;

  /// Stops the thread and waits for it. The relay gives its parts back. To stop several relays at once, request the
  /// stop of their `RelayOptions::stop` first.
  ///
  /// @blocking until the present call of the publisher returns and the rows of the confirmed messages are removed.
  ~OutboxRelay();

  /// Makes the relay read at once, for example because a transaction has added messages. Call it after the commit.
  ///
  /// @threads any.
  void wake() noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

TXINBOX_API_END
}  // namespace txinbox
