#pragma once

/// @file
/// For operators: pauses and resumes consumers.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/connection_ref.hpp>
#include <txinbox/operator_action.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

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

TXINBOX_NAMESPACE_END
}  // namespace txinbox
