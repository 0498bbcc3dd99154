#pragma once

/// @file
/// For operators: erases the personal data of messages.

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

/// What `erase` has done with a message.
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
/// @errors      `Error` invalid_argument, invalid_key, transaction_open, stopped, schema_missing if the migration V3
/// was
///              not applied, and what `verify` throws; a database error as it was. Call it again then.
/// @return an outcome for each key.
std::vector<EraseOutcome> erase(ConnectionRef connection, std::string_view consumer,
                                std::span<const std::string> business_keys, const OperatorAction& by,
                                const EraseOptions& options = {});

TXINBOX_API_END
}  // namespace txinbox
