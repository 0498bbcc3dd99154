#pragma once

/// @file
/// Removes rows: the row of one key, or all rows that are old.

#include <chrono>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include <txinbox/connection_ref.hpp>
#include <txinbox/listener.hpp>
#include <txinbox/retry_policy.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// Removes the row of one key, in any state. The next delivery runs the handler again. It is for an operator who knows
/// that the effect is missing, or that it must be repeated.
///
/// @transaction its own; none may be open.
/// @blocking    it waits for a transaction that holds the key.
/// @errors      `Error` invalid_key, transaction_open, schema_missing; a database error as it was.
/// @return whether there was a row.
bool forget(ConnectionRef connection, std::string_view consumer, std::string_view business_key);

/// How much a purge removes, and how fast. With these defaults it removes a few hundred rows at a time, which takes
/// some milliseconds. Then it pauses three times as long.
struct PurgeOptions {
  /// Purge only the rows of this consumer. Empty: the rows of all consumers.
  std::string consumer = {};

  /// At most this many rows are removed in one transaction, from 1 to 10,000. A purge begins with fewer. It takes fewer
  /// again if a batch takes long or meets locks.
  std::size_t batch_size = 1'000;

  /// The purge ends when it has removed this many rows. Zero: no limit.
  std::size_t max_rows = 0;

  /// The purge begins no batch after this time. Zero: no limit.
  std::chrono::milliseconds max_time{0};

  /// If a batch takes longer than this, the next batch has half as many rows. This never makes a batch smaller than 50
  /// rows, because on a slow disk the commit takes long even for few rows. At least 1 ms.
  std::chrono::milliseconds max_batch_time{50};

  /// The share of the time in which the purge works, above 0 and at most 1. It pauses for the rest of the time, so that
  /// consumers can use the disk and, on SQLite, the writer's lock.
  double duty = 0.25;

  /// How one batch is tried again after a transient error (deadlock, lock time-out, lost connection). Each try has half
  /// as many rows. After a batch that succeeds, the count begins again.
  RetryPolicy retry = {.max_attempts = 10};

  /// Once it is set, waits and pauses end. The present batch finishes.
  std::stop_token stop = {};

  /// They get an event after each batch that removed rows (`purged`, with `rows` and the `duration` of the batch) and
  /// at each `retry`. `Event::consumer` is `consumer`.
  Listeners listeners = {};
};

/// Removes the rows of messages that were consumed longer ago than `older_than`, in batches. Each batch commits.
///
/// A message whose row was removed runs again if it is delivered again. So `older_than` must be longer than the longest
/// time after which a message can be delivered again, by the broker or by hand. It has no default. See
/// docs/operations/retention.md.
///
/// It removes only rows in state consumed. Rows that are consuming, parked, torn or discarded stay. A row that a
/// consumer holds at that moment stays for the next purge. Any number of purges may run at once.
///
/// At its end it writes to `txinbox_consumer`: `older_than`, how many rows it removed, and the time. It also does so if
/// a limit or the stop token ended it, or if an error occurred after it had removed rows. It adds no row for a consumer
/// that has no rows, because the name can be a typing error.
///
/// @transaction its own, one for each batch; none may be open.
/// @blocking    until all old rows are removed or a limit is reached. It waits for no row. On SQLite it waits for the
///              writer's lock, at most the session's busy time-out.
/// @limits      `older_than` from 1 s to 100 years.
/// @errors      `Error` invalid_argument for `older_than` and the options, invalid_key, transaction_open, and what
///              `verify` throws; a database error as it was, after its retries. Rows that were removed before the error
///              stay removed.
/// @return how many rows were removed.
std::size_t purge(ConnectionRef connection, std::chrono::seconds older_than, PurgeOptions options = {});

/// As `purge`, but for `txinbox_failed_message`: it removes the rows of messages whose last failure is older. A message
/// that is parked or torn keeps its row. It also removes markers of attempts (`count_starts`) that began longer ago and
/// never ended, if the message has no failure. It writes nothing to `txinbox_consumer`.
std::size_t purge_failed(ConnectionRef connection, std::chrono::seconds older_than, PurgeOptions options = {});

/// As `purge`, but for `txinbox_conflicting_message`: it removes the records of conflicting contents whose last
/// delivery is older. It writes nothing to `txinbox_consumer`.
std::size_t purge_conflicts(ConnectionRef connection, std::chrono::seconds older_than, PurgeOptions options = {});

/// Counts the rows that `purge` would remove now, of this consumer or, if the name is empty, of all consumers. It
/// removes nothing and writes nothing.
///
/// @transaction none may be open.
/// @blocking    for one statement, two for `count_purgeable_failed`. Each reads all rows that are old enough, by the
///              index on the time. It waits for no row.
/// @errors      as `purge`.
std::size_t count_purgeable(ConnectionRef connection, std::chrono::seconds older_than,
                            const std::string& consumer = {});

/// As `count_purgeable`, but counts what `purge_failed` would remove.
std::size_t count_purgeable_failed(ConnectionRef connection, std::chrono::seconds older_than,
                                   const std::string& consumer = {});

/// As `count_purgeable`, but counts what `purge_conflicts` would remove.
std::size_t count_purgeable_conflicts(ConnectionRef connection, std::chrono::seconds older_than,
                                      const std::string& consumer = {});

TXINBOX_NAMESPACE_END
}  // namespace txinbox
