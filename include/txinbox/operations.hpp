#pragma once

/// @file
/// For operators: pauses and resumes consumers, lists the changes that operators have made, and erases the personal
/// data of messages.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
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
/// `run` asks the database before it runs messages, at most once a second, in every process. It then finishes the
/// messages that run, begins no others, and polls no more. It asks before the first message, too, so a restart does not
/// end the pause. As long as no message comes, it does not ask. It goes on if the
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

  /// The action: "retry", "discard", "forget", "erase", "redrive_stored", "pause", "resume", "outbox_retry",
  /// "outbox_discard". A purge and a redrive have two records each, such as "redrive_begin" and "redrive": the second
  /// one has the number of messages. It is missing if the process was killed, or if an error came before anything was
  /// published or removed.
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

/// The outcome of `erase` for a message.
enum class EraseOutcome {
  erased,     ///< The message is erased, now or by an earlier call.
  not_found,  ///< Nothing is recorded for this key.
  running,    ///< A worker runs the message, its process has crashed in it, or a delivery has claimed the key during
              ///< the erasure. The key stays. Call `erase` again, after a crash with `no_consumer_runs`.
  torn,       ///< The message is torn. Nothing was changed. Repair the data, then discard the message.
};

/// The name of the enumerator, such as "not_found".
std::string_view to_string(EraseOutcome) noexcept;

/// How `erase` works.
struct EraseOptions {
  /// No process consumes with this consumer now. Then `erase` does not wait. If a process does, a message can run
  /// again.
  bool no_consumer_runs = false;

  /// Ends the wait. `erase` then throws `stopped`, and must be called again.
  std::stop_token stop = {};
};

/// Erases what the inbox holds of messages, except that they must not run again.
///
/// For each key, it removes the payload, the error text, the ids, the hash of the content, the stored result and the
/// conflicts. It replaces the key by a hash, also in `txinbox_audit`: "txinbox-erased:" and a SHA-256 of the consumer's
/// name and the key, in hexadecimal. A later delivery of a message that was consumed still gets `already_consumed`, but
/// without a result. A message that was parked, failing or discarded gets `discarded`. Who knows all possible keys can
/// find the key of a hash.
///
/// It does not erase what a broker, the outbox, the business tables, a log or a backup holds, and not the keys of
/// leases that are in Redis. A worker whose lease has expired can still fail, and record its failure: call `erase`
/// again.
///
/// Consumers read the hashes of erased keys every ten seconds, and keep them in memory: about 200 bytes for each. To
/// stop no consumer, `erase` first adds the hashes, then waits for 30 seconds, and then removes the keys. If the
/// process ends in between, call it again with the same keys. Do not `forget` the keys meanwhile. A replica that
/// consumers use must not be later than ten seconds. `purge` removes the rows with hashes of consumed messages, as
/// other rows. To let an erased message run again, `forget` its erased key.
///
/// @param connection any connection to the database of the inbox.
/// @param consumer the consumer's name.
/// @param business_keys the keys. One call with many keys waits only once.
/// @param by who does it, and why. It must not hold personal data, because `txinbox_audit` keeps it.
/// @param options see there.
///
/// @transaction its own, two for each key; none may be open.
/// @blocking    for 30 seconds if a key was found. It waits for a delivery that holds a key, except on PostgreSQL for
///              the first delivery of a message: that message is `not_found`. It reads `txinbox_audit` once for each
///              key.
/// @errors      `Error` invalid_argument, invalid_key, transaction_open, stopped; schema_missing without the migration
///              V3; what `verify` throws; a database error as it was. Call it again then.
/// @return an outcome for each key.
std::vector<EraseOutcome> erase(ConnectionRef connection, std::string_view consumer,
                                std::span<const std::string> business_keys, const OperatorAction& by,
                                const EraseOptions& options = {});

TXINBOX_API_END
}  // namespace txinbox
