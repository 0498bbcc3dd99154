#pragma once

/// @file
/// For operators: shows what is in the outbox, and retries or discards messages that cannot be published.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/connection_ref.hpp>
#include <txinbox/operator_action.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// The state of a message in the outbox.
enum class OutboxState {
  waiting,  ///< No relay has tried to publish the message since it was added or retried.
  failing,  ///< An attempt failed, and the relay will try again. The later messages of its key wait.
  parked,   ///< The relay parked the message. It is not published until an operator calls `retry_outbox`.
};

/// The name of the enumerator, such as "parked".
std::string_view to_string(OutboxState) noexcept;

/// A relay that is registered in the database.
struct OutboxRelayInfo {
  std::string name;                        ///< Host and process: "host:4711".
  std::optional<DatabaseTime> started_at;  ///< When the relay has started.
  std::chrono::milliseconds remaining{0};  ///< The time until its lease expires. Zero or less: the lease has expired.
  int parts = 0;                           ///< How many of the 64 parts the relay publishes.
};

/// The result of `outbox_status`.
struct OutboxStatus {
  std::int64_t waiting = 0;            ///< The number of messages in state waiting.
  std::int64_t failing = 0;            ///< The number of messages in state failing.
  std::int64_t parked = 0;             ///< The number of messages in state parked.
  std::optional<DatabaseTime> oldest;  ///< When the oldest waiting or failing message was added. None if there is none.
  std::chrono::milliseconds oldest_age{0};  ///< The age of that message.
  std::vector<OutboxRelayInfo> relays;      ///< Sorted by name. A relay whose lease has expired has crashed, or it
                                            ///< hangs.
  int free_parts = 0;                       ///< The number of parts that no relay with a valid lease publishes.
};

/// Counts what is in the outbox.
///
/// @transaction none may be open.
/// @blocking    it reads the whole outbox once, without the payloads.
/// @errors      `Error` transaction_open; what `verify` throws; unsafe_connection for all shards of a sharded database;
///              a database error as it was.
OutboxStatus outbox_status(ConnectionRef connection);

/// A message in the outbox.
struct OutboxMessageInfo {
  std::string id;                            ///< The message id.
  std::string topic;                         ///< See `OutgoingMessage::topic`.
  std::string key;                           ///< See `OutgoingMessage::key`.
  std::string type;                          ///< See `OutgoingMessage::type`.
  OutboxState state = OutboxState::waiting;  ///< The state of the message.
  int attempts = 0;                          ///< How often the message has failed since it was added or retried.
  std::string last_error;                    ///< The last error of the publisher. Empty if the message never failed.
  std::optional<DatabaseTime> created_at;    ///< When the message was added.
  std::chrono::milliseconds age{0};          ///< The time since the message was added.
  std::optional<DatabaseTime> parked_at;     ///< When the message was parked. None if it is not parked.
  std::optional<std::string> payload = {};   ///< The payload. It is read only if `OutboxFilter::payloads` is set.
  std::string cursor = {};                   ///< The place of the row in the list, for `OutboxFilter::after`.
};

/// Which messages of the outbox to list or change. An empty member selects all messages.
struct OutboxFilter {
  std::string id = {};                    ///< Only the message with this id.
  std::string topic = {};                 ///< Only messages of this topic.
  std::string key = {};                   ///< Only messages of this key.
  std::optional<OutboxState> state = {};  ///< Only messages in this state.
  std::size_t limit = 1'000;              ///< At most this many messages, those that were added first.
  bool payloads = false;                  ///< Whether `list_outbox` reads the payloads.

  /// The `cursor` of the last row of the page before: the list goes on behind it. Empty: it begins with its first row.
  std::string after = {};
};

/// Lists messages of the outbox, in the order in which they were added.
///
/// @transaction none may be open.
/// @errors      `Error` transaction_open; what `verify` throws; invalid_argument for an id that is no UUID, and for
///              `after`; a database error as it was.
std::vector<OutboxMessageInfo> list_outbox(ConnectionRef connection, const OutboxFilter& filter = {});

/// Lets relays publish parked messages again. The count of their attempts begins at zero. A retried message comes after
/// messages of its key that were published since it was parked. `filter.state` is ignored.
///
/// @param connection any connection to the database of the outbox.
/// @param filter which messages.
/// @param by who does it, and why: a row of `txinbox_audit` for each message, with its id as the key. None: no row is
///        written.
///
/// @transaction its own, one for each message, with the row for the audit; none may be open.
/// @errors      as `list_outbox`; `Error` transaction_open. With `by`, also invalid_argument, and schema_missing if the
///              migration V3 was not applied.
/// @return how many messages it changed.
std::size_t retry_outbox(ConnectionRef connection, const OutboxFilter& filter,
                         const std::optional<OperatorAction>& by = {});

/// Removes messages for good. Without `filter.state` it removes only parked and failing messages. If a relay is
/// publishing a message at that moment, the message can still be published.
///
/// @param connection any connection to the database of the outbox.
/// @param filter which messages.
/// @param by as for `retry_outbox`.
///
/// @transaction as `retry_outbox`.
/// @errors      as `retry_outbox`.
/// @return how many messages it removed.
std::size_t discard_outbox(ConnectionRef connection, const OutboxFilter& filter,
                           const std::optional<OperatorAction>& by = {});

TXINBOX_API_END
}  // namespace txinbox
