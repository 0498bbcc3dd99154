#pragma once

/// @file
/// For operators: publishes dead letters again, to the topic or queue that they came from.

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/connection_ref.hpp>
#include <txinbox/failed_messages.hpp>
#include <txinbox/message_of.hpp>
#include <txinbox/operator_action.hpp>
#include <txinbox/outbox_relay.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

class Pool;

/// A delivery of a dead letter that is published again.
struct Republication {
  const Incoming* incoming;                                            ///< It is valid during the call.
  std::string destination;                                             ///< The topic or queue.
  std::vector<std::pair<std::string_view, std::string>> headers = {};  ///< They are added.
};

/// Publishes deliveries again as they are: with their body, their key, the properties that the broker keeps apart, and
/// their headers. It leaves out the headers for which `is_replaced_by_redrive` is true, and adds
/// `Republication::headers`.
///
/// The deliveries must come from a source of the same kind of broker. Each component with a source has a republisher:
/// `kafka_republisher`, `rabbitmq_republisher`, `rocketmq_republisher`. One of your own keeps the rule of `Publisher`:
/// a delivery is `confirmed` only if the broker has said that it has the message.
using Republisher = std::function<std::vector<PublishResult>(std::span<const Republication>)>;

/// An event of a dead letter, or of the whole call.
enum class RedriveEventType {
  redriven,       ///< The broker has confirmed the message. Its dead letter is acknowledged, if the lane allows it.
  would_redrive,  ///< With `dry_run`: the message would be published.
  left,           ///< The dead letter stays. `text` says why.
  waiting,        ///< The broker or the database cannot be used now. `text` says why. It tries again.
  source,         ///< The source reports `text`.
};

/// The name of the enumerator, such as "redriven".
std::string_view to_string(RedriveEventType) noexcept;

/// An event of `redrive`. It is valid only during the call.
struct RedriveEvent {
  RedriveEventType type;               ///< It says which other members have a value.
  std::string_view consumer = {};      ///< The consumer that could not consume the message.
  std::string_view business_key = {};  ///< Empty if it could not be read. It can be personal data.
  std::string_view reason = {};        ///< `DeadLetter::reason`.
  std::string_view error_class = {};   ///< `DeadLetter::error_class`.
  std::string_view id = {};            ///< `Incoming::id` of the dead letter.
  std::string_view destination = {};   ///< The topic or queue to which it is published.
  std::string_view text = {};          ///< It can hold what a broker or a database has sent, but no content.
};

/// Which dead letters are published again, and how. An empty member selects all dead letters.
struct RedriveOptions {
  std::string consumer = {};     ///< Only dead letters of this consumer. A dead letter without the header
                                 ///< `txinbox-consumer` counts as one of this consumer.
  std::string reason = {};       ///< Only those with this reason. Those with the reason "conflict" are published only
                                 ///< if they are asked for here: their key is known with another content.
  std::string error_class = {};  ///< Only those with this error class.

  /// The topic or queue to publish to. Empty: where each message came from, as its header `txinbox-source` says. Every
  /// consumer of the topic gets the message, and not only the one that could not consume it.
  std::string to = {};

  /// Finds the business key of a dead letter without the header `txinbox-consumer`, for the dead letters of RocketMQ.
  /// It is the function that the consumer gives to `run`.
  MessageOf message_of = {};

  /// Who does it, and why. `txinbox_audit` then gets a row "redrive_begin" before the first dead letter, a row "retry"
  /// for each message that was parked or whose failures were counted, and a row "redrive" at the end, with the number
  /// of messages that were published. None: no row is written.
  std::optional<OperatorAction> by = {};

  std::size_t max = 0;            ///< At most this many are published. 0: no limit.
  double rate = 0;                ///< At most this many in a second. 0: no limit.
  int max_redrives = 3;           ///< A message that was published again as often as this, and failed again, is left.
  std::size_t max_left = 10'000;  ///< The call ends when it has left this many, or 512 MiB: it has to hold them. With
                                  ///< `dry_run`, those that would be published count, too.
  bool dry_run = false;           ///< Publishes and changes nothing, and acknowledges nothing.

  /// The call ends if no dead letter has come for this time.
  std::chrono::milliseconds idle_exit{3'000};

  std::stop_token stop = {};                               ///< Ends the call after the present dead letters.
  std::function<void(const RedriveEvent&)> observer = {};  ///< Gets the events, on the caller's thread.
};

/// Why a call of `redrive` has ended.
enum class RedriveEnd {
  at_end,         ///< No dead letter has come for `idle_exit`.
  stopped,        ///< The stop token was set.
  limit,          ///< `max` was reached.
  too_many_left,  ///< `max_left` was reached. There may be other dead letters behind those that were left.
  unreachable,    ///< The broker could not be reached for 30 seconds, or for `idle_exit` if it is longer, or nothing
                  ///< could be published for 2 minutes.
  not_at_end,  ///< The source knows that others wait, but the broker gave none for this time. A source of RabbitMQ gets
               ///< none if as many as its prefetch were left.
};

/// The name of the enumerator, such as "at_end".
std::string_view to_string(RedriveEnd) noexcept;

/// The counts of a call of `redrive`, and the reason for its end.
struct RedriveSummary {
  std::size_t redriven = 0;                     ///< Published again; with `dry_run`, those that would be.
  std::size_t left = 0;                         ///< They are still dead letters. They can run again later.
  std::map<std::string, std::size_t> why = {};  ///< How many were left for which reason.
  RedriveEnd end = RedriveEnd::at_end;          ///< Why the call has ended.
};

/// Publishes the dead letters of a dead-letter queue again. `source` reads this queue.
///
/// For each dead letter: it lets the message run again in the database as `retry_failed` does, publishes it to the
/// topic or queue that it came from, waits for the broker's confirmation, and acknowledges the dead letter. If the
/// process ends in between, the message may be published twice: its consumer answers the second one as a duplicate. No
/// dead letter is lost.
///
/// A dead letter is left, and reported, if:
/// - it does not match the options;
/// - it has no consumer or no destination: another program has written it, or it is one of RocketMQ;
/// - its header `txinbox-consumer` is missing, and `message_of` does not find its key;
/// - nothing is recorded for its consumer in this database, and the options do not name the consumer;
/// - its message is torn or discarded: `forget` it first;
/// - this call has published it already and it failed again, or it was published again `max_redrives` times;
/// - its own headers did not fit into the dead letter;
/// - the broker refuses the message, or has refused it for ten seconds, for example because the destination is gone;
/// - another transaction has held its key for ten seconds.
///
/// If the message of such a dead letter was parked, it may not be parked any more. So `list_failed` does not show all
/// that is left.
///
/// The source gives the dead letters that are left back to the broker. On Kafka, the next call for the same group
/// begins with the first one that was left. A broker that counts deliveries counts one for each of them, also with
/// `dry_run`: a quorum queue with a delivery limit, and RocketMQ, do this.
///
/// @transaction one of its own for each dead letter.
/// @blocking    until the end. It waits for a broker or a database that is away, two minutes at most, or
///              `idle_exit` if it is longer.
/// @errors
/// - `Error` invalid_argument for options that are not valid.
/// - those of `Source::poll`, and what `verify` throws.
/// - a database error that does not pass, as it was.
RedriveSummary redrive(Source& source, const Republisher& publish, Pool& pool, const RedriveOptions& options = {});

/// Publishes parked messages again from the payloads that the database keeps (`Message::payload`), without a
/// dead-letter queue.
///
/// In one transaction for each message, it lets the message run again as `retry_failed` does, and adds its payload to
/// the outbox, with the business key as the message's key and without headers. So the message is either parked or
/// in the outbox. An `OutboxRelay` publishes it. The consumer must find the business key in the payload or
/// in the message's key.
///
/// @param connection any connection to the database.
/// @param topic see `OutgoingMessage::topic`.
/// @param filter which messages. Of them, only those are published that are parked, and whose payload is stored.
/// @param by who does it, and why: a row of `txinbox_audit` for each message, with the action "redrive_stored". None:
///           no row is written.
///
/// @transaction one of its own for each message; none may be open.
/// @blocking    it waits for a delivery that holds a key.
/// @errors      `Error` invalid_message for the topic, and those of `retry_failed`; a database error as it was. What
///              was added before stays.
/// @return how many messages it added to the outbox.
std::size_t redrive_stored(ConnectionRef connection, const std::string& topic, const FailedFilter& filter = {},
                           const std::optional<OperatorAction>& by = {});

TXINBOX_API_END
}  // namespace txinbox
