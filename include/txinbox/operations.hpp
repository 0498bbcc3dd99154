#pragma once

/// @file
/// For operators: pauses and resumes consumers, and lists the changes that operators have made.

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

/// A consumer that is paused.
struct ConsumerPause {
  std::string consumer;                    ///< The consumer's name.
  std::optional<DatabaseTime> paused_at;   ///< When it was paused. Pausing again sets a new time.
  std::optional<DatabaseTime> resumes_at;  ///< When the pause ends by itself; none: until `resume_consumer`.
  std::string reason;                      ///< Why it was paused.
  std::string actor;                       ///< Who has paused it.
};

/// Pauses a consumer. If it is paused already, the new times, actor and reason replace the old ones.
///
/// `run` asks the database once a second, in every process. It then finishes the messages that run, begins no others,
/// and polls no more. It asks before the first message, too, so a restart does not end the pause. It goes on if the
/// user of the service may not read `txinbox_pause`. A call of `consume` ignores the pause.
///
/// The consumer need not be known: it can be paused before it consumes its first message.
///
/// @param connection any connection to the database of the inbox.
/// @param consumer the consumer's name.
/// @param by who pauses it, and why. The reason must not be empty.
/// @param duration when the pause ends by itself, by the database's clock. None: it ends with `resume_consumer`.
///
/// @transaction its own, which also writes a row to `txinbox_audit`; none may be open.
/// @blocking    it waits for another call that changes the same pause.
/// @limits      `duration` from 1 s to 100 years.
/// @errors      `Error` invalid_argument, invalid_key, transaction_open, schema_missing if the migration V3 was not
///              applied, and what `verify` throws; a database error as it was.
void pause_consumer(ConnectionRef connection, std::string_view consumer, const OperatorAction& by,
                    std::optional<std::chrono::seconds> duration = {});

/// Ends the pause of a consumer.
///
/// @transaction as `pause_consumer`. It writes nothing if the consumer was not paused.
/// @blocking    it waits for another call that changes the same pause.
/// @errors      as `pause_consumer`.
/// @return whether the consumer was paused. A pause that had ended by itself does not count.
bool resume_consumer(ConnectionRef connection, std::string_view consumer, const OperatorAction& by);

/// Lists the consumers that are paused now, by the database's clock. They are sorted by name.
///
/// @errors `Error` schema_missing if the migration V3 was not applied; a database error as it was.
std::vector<ConsumerPause> list_pauses(ConnectionRef connection);

/// A change that an operator has made, as `txinbox_audit` has recorded it.
struct AuditRecord {
  std::int64_t id = 0;             ///< The number of the row. A later change has a greater one.
  std::optional<DatabaseTime> at;  ///< When the change was made.
  std::string actor;               ///< Who has made it.

  /// What it was: "retry", "discard", "forget", "erase", "redrive_stored", "pause", "resume", "outbox_retry",
  /// "outbox_discard". A purge and a redrive have two records each, such as "redrive_begin" and "redrive": the second
  /// one has the number of messages, and is missing if the process was killed.
  std::string action;
  std::string consumer;       ///< Empty: all consumers.
  std::string business_key;   ///< Empty if the change concerns more than one message. It can be personal data. Of a
                              ///< message in the outbox, it is the id.
  std::int64_t messages = 0;  ///< How many rows or messages it has changed.
  std::string reason;         ///< Why; empty if no reason was given.
  std::string cursor = {};    ///< The place of the row in the list, for `AuditFilter::after`.
};

/// Which changes to list. An empty or zero member selects all of them.
struct AuditFilter {
  std::string consumer = {};           ///< Only changes of this consumer.
  std::string business_key = {};       ///< Only changes of exactly this key.
  std::string actor = {};              ///< Only changes by this actor.
  std::string action = {};             ///< Only changes with this action.
  std::chrono::seconds newer_than{0};  ///< Only changes of this last time, by the database's clock.
  std::size_t limit = 1000;            ///< At most this many are listed; 0: none.

  /// The `cursor` of the last row of the page before: the list goes on behind it. Empty: it begins with its first row.
  std::string after = {};
};

/// Lists the changes that operators have made, the latest first.
///
/// It finds what `pause_consumer` and `resume_consumer` have done, and the calls of other functions that got an
/// `OperatorAction`.
///
/// @blocking it reads the table from its end. No index covers the members of the filter.
/// @errors   `Error` invalid_key, invalid_argument for `after`, schema_missing if the migration V3 was not applied; a
///           database error as it was.
std::vector<AuditRecord> list_audit(ConnectionRef connection, const AuditFilter& filter = {});

TXINBOX_API_END
}  // namespace txinbox
