#pragma once

/// @file
/// For operators: what is in the outbox, and what to do with messages that cannot be published.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/connection_ref.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// Where a message of the outbox stands.
enum class OutboxState {
  waiting,  ///< It was not tried yet.
  failing,  ///< It has failed, and will be tried again. The later messages of its key wait for it.
  parked,   ///< It was given up. It is not published until an operator calls `retry_outbox`.
};

/// The name of the enumerator, such as "parked".
std::string_view to_string(OutboxState) noexcept;

/// A relay that has registered itself.
struct OutboxRelayInfo {
  std::string name;                        ///< Host and process: "host:4711".
  std::string started_at;                  ///< UTC, in the form "2026-01-31 23:59:59.123456".
  std::chrono::milliseconds remaining{0};  ///< The time until its lease expires; zero or less: it has expired.
  int parts = 0;                           ///< How many of the 64 parts it publishes.
};

/// What `outbox_status` found.
struct OutboxStatus {
  std::int64_t waiting = 0;  ///< Messages that were not tried yet.
  std::int64_t failing = 0;  ///< Messages that have failed, and will be tried again.
  std::int64_t parked = 0;   ///< Messages that were given up.
  std::string oldest;        ///< When the first message was added that is waiting or failing; empty without one. UTC.
  std::chrono::milliseconds oldest_age{0};  ///< The age of that message.
  std::vector<OutboxRelayInfo> relays;      ///< Sorted by name. Those whose lease has expired have crashed, or hang.
  int free_parts = 0;                       ///< Parts that no relay with a lease publishes.
};

/// Counts what is in the outbox.
///
/// @blocking it reads the whole outbox once, without the payloads.
/// @errors   `Error` schema_missing; a database error as it was.
OutboxStatus outbox_status(ConnectionRef connection);

/// A message in the outbox. Times are UTC.
struct OutboxMessageInfo {
  std::string id;                            ///< The message id.
  std::string topic;                         ///< See `OutgoingMessage::topic`.
  std::string key;                           ///< See `OutgoingMessage::key`.
  std::string type;                          ///< See `OutgoingMessage::type`.
  OutboxState state = OutboxState::waiting;  ///< Where it stands.
  int attempts = 0;                          ///< How often it has failed since it was added or retried.
  std::string last_error;                    ///< What the publisher said last; empty if it never failed.
  std::string created_at;                    ///< When it was added.
  std::chrono::milliseconds age{0};          ///< The time since then.
  std::string parked_at;                     ///< When it was parked; empty if it is not parked.
  std::optional<std::string> payload = {};   ///< Only if `OutboxFilter::payloads` is set.
};

/// Which messages of the outbox are meant. Members that are empty choose all.
struct OutboxFilter {
  std::string id = {};                    ///< The message with this id.
  std::string topic = {};                 ///< Those of this topic.
  std::string key = {};                   ///< Those of this key.
  std::optional<OutboxState> state = {};  ///< Those in this state.
  std::size_t limit = 1'000;              ///< At most so many, the first that were added.
  bool payloads = false;                  ///< Whether `list_outbox` reads the payloads.
};

/// Lists messages of the outbox, in the order in which they were added.
///
/// @errors `Error` schema_missing, invalid_argument for an id that is no UUID; a database error as it was.
std::vector<OutboxMessageInfo> list_outbox(ConnectionRef connection, const OutboxFilter& filter = {});

/// Lets messages be published again that are parked. Their attempts count from zero. They come after messages of their
/// key that were published meanwhile. `filter.state` does not matter.
///
/// @transaction its own, one for each message; none may be open.
/// @errors      as `list_outbox`; `Error` transaction_open.
/// @return how many there were.
std::size_t retry_outbox(ConnectionRef connection, const OutboxFilter& filter);

/// Removes messages for good. Without `filter.state` it removes only those that are parked or failing. A message that a
/// relay is publishing at that moment can be published all the same.
///
/// @transaction its own, one for each message; none may be open.
/// @errors      as `retry_outbox`.
/// @return how many there were.
std::size_t discard_outbox(ConnectionRef connection, const OutboxFilter& filter);

TXINBOX_NAMESPACE_END
}  // namespace txinbox
