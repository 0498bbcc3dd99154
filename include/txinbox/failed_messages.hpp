#pragma once

/// @file
/// For operators: lists, retries and discards messages that failed.

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

/// The present state of a message that failed.
enum class FailedState {
  failing,    ///< The message failed, but the next delivery runs its handler. No lease on it is held.
  running,    ///< A `LeaseConsumer` holds a lease on the message.
  parked,     ///< The message failed too often. Later deliveries get `parked`, until `retry_failed`.
  torn,       ///< Its handler committed the transaction itself. Repair the data, then call `forget`.
  discarded,  ///< An operator discarded the message. Later deliveries get `discarded`.
};

/// The name of the enumerator, such as "failing".
std::string_view to_string(FailedState) noexcept;

/// A message that failed and is still not consumed.
struct FailedMessage {
  std::string consumer;      ///< The consumer's name.
  std::string business_key;  ///< See `Message::business_key`. It can be personal data.
  std::string message_id;    ///< The broker's id of the last delivery that failed; empty if none was given.
  FailedState state = FailedState::failing;     ///< The state that decides what the message's next delivery gets.
  int attempts = 0;                             ///< How many deliveries failed since the last retry.
  int crashes = 0;                              ///< How many of these `attempts` ended because their process crashed.
  std::string first_error;                      ///< The class of the first error, see `error_class`.
  std::optional<DatabaseTime> first_failed_at;  ///< The first failure; none if none is known. A retry keeps it.
  std::string last_error;                       ///< The class of the last error.
  std::optional<DatabaseTime> last_failed_at;   ///< The last failure; none if none is known.
  std::chrono::seconds age{0};                  ///< The time since the last failure.
  std::string error_text;                       ///< Empty unless `keep_error_text` was set.
  std::optional<std::string> payload;           ///< Filled if `FailedFilter::payloads` is set and a payload was stored.
  std::string cursor = {};  ///< The place of the row in the list, for `FailedFilter::after`. It contains the key.
};

/// Which failed messages to list or change. An empty or zero member selects all messages, except where it says
/// otherwise.
struct FailedFilter {
  std::string consumer = {};                      ///< Only messages of this consumer.
  std::string business_key = {};                  ///< Only messages with exactly this key.
  std::optional<FailedState> state = {};          ///< None: all but the discarded messages.
  std::string error_class = {};                   ///< The class of the last failure, see `error_class`.
  std::chrono::seconds older_than{0};             ///< The least time since the last failure.
  std::optional<DatabaseTime> failed_until = {};  ///< Only messages that have not failed again since this time.
  std::size_t limit = 1000;  ///< At most this many messages are listed or changed in one call; 0: none.
  bool payloads = false;     ///< `list_failed` fills `FailedMessage::payload`.

  /// The `cursor` of the last row of the page before: the list goes on behind it. Empty: it begins with its first row.
  std::string after = {};
};

/// Lists the messages that failed and are still not consumed, the latest failure first.
///
/// If both `consumer` and `business_key` are given, it also finds a message that is parked, torn or discarded although
/// no failure was counted (`attempts` is zero): somebody changed the row by hand, the count could not be written, or an
/// older txinbox wrote the row.
///
/// A message that fails again between two pages moves to the beginning of the list. A message that is consumed leaves
/// the list.
///
/// @transaction none may be open.
/// @limits      it reads `txinbox_failed_message`. `purge` with `Purgeable::failed` limits the size of that table.
/// @errors      `Error` invalid_key, invalid_argument for `after`, transaction_open, and what `verify` throws; a
///              database error as it was.
std::vector<FailedMessage> list_failed(ConnectionRef connection, const FailedFilter& filter = {});

/// Failed messages of one consumer, in one state, whose last failure has one class.
struct FailedGroup {
  std::string consumer;                         ///< The consumer's name.
  FailedState state = FailedState::failing;     ///< The state of these messages.
  std::string error_class;                      ///< The class of their last failure.
  std::int64_t messages = 0;                    ///< How many there are.
  std::optional<DatabaseTime> first_failed_at;  ///< The earliest first failure of them.
  std::optional<DatabaseTime> last_failed_at;   ///< The latest failure of them.
};

/// Counts the messages that `list_failed` lists, in groups. The largest group is first. A message without a counted
/// failure is in no group.
///
/// @param connection any connection to the database of the inbox.
/// @param filter which messages. `limit` is the most groups. It ignores `after`.
///
/// @transaction as `list_failed`.
/// @blocking    it reads all failed messages that the filter selects once.
/// @errors      as `list_failed`.
std::vector<FailedGroup> group_failed(ConnectionRef connection, const FailedFilter& filter = {});

/// How many failed messages there are.
struct FailedCount {
  std::size_t messages = 0;      ///< All of them.
  std::size_t with_payload = 0;  ///< Those of them whose payload is stored. `redrive_stored` can publish these.
};

/// Counts the messages that `list_failed` lists. It does not count a message without a counted failure.
///
/// @param connection any connection to the database of the inbox.
/// @param filter which messages. It ignores `limit` and `after`.
///
/// @transaction as `list_failed`.
/// @blocking    as `group_failed`.
/// @errors      as `list_failed`.
/// @return both numbers, from one look at the table.
FailedCount count_failed(ConnectionRef connection, const FailedFilter& filter = {});

/// Lets the next delivery of these messages run, and sets their count to zero. It changes parked and failing messages.
/// It does not change torn messages, because a part of their SQL is committed. It does not end a running attempt. With
/// `count_starts`, a crash of that attempt is still noticed.
///
/// @param connection any connection to the database of the inbox.
/// @param filter which messages.
/// @param by who does it, and why: a row of `txinbox_audit` for each message. None: no row is written.
///
/// @transaction one of its own for each message, with the row for the audit; none may be open. If a later message
///              fails, the changes of the earlier ones stay.
/// @blocking    it waits for a delivery that holds a key.
/// @errors      as `list_failed`. With `by`, also `Error` invalid_argument, and schema_missing if the migration V3 was
///              not applied.
/// @return how many messages it changed.
std::size_t retry_failed(ConnectionRef connection, const FailedFilter& filter,
                         const std::optional<OperatorAction>& by = {});

/// Discards these messages, so that no later delivery runs. It changes parked, torn and failing messages.
///
/// A worker whose lease has expired may still run the handler of a failing message. Its `complete` then reports
/// `lease_lost`.
///
/// Later deliveries get `discarded` and are acknowledged. No purge removes this state; `forget` does.
///
/// @param connection any connection to the database of the inbox.
/// @param filter which messages.
/// @param by as for `retry_failed`.
///
/// @transaction as `retry_failed`.
/// @blocking    it waits for a delivery that holds a key.
/// @errors      as `retry_failed`.
/// @return how many messages it changed.
std::size_t discard_failed(ConnectionRef connection, const FailedFilter& filter,
                           const std::optional<OperatorAction>& by = {});

TXINBOX_API_END
}  // namespace txinbox
