#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include <txinbox/event.hpp>
#include <txinbox/retry_policy.hpp>
#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// Removes the row of one key, whatever its state: the next delivery runs the handler again. For the
/// operator who knows that the effect is not there, or must be repeated.
///
/// Transaction: its own; none may be open.
/// Blocking:    waits for a transaction that holds the key.
/// Errors:      `Error` invalid_key, transaction_open, schema_missing; a database error as it was.
/// @return whether there was a row.
bool forget(soci::session& session, std::string_view consumer, std::string_view business_key);

/// How a purge goes about it. With these defaults it takes a few hundred rows at a time, for some
/// milliseconds, and rests three times as long.
struct PurgeOptions {
  /// Only the rows of this consumer; empty: of all.
  std::string consumer = {};

  /// The most rows that one transaction removes, 1 to 10,000. It begins with fewer, and comes back to
  /// fewer when a batch takes long or meets locks.
  std::size_t batch_size = 1'000;

  /// It stops when it has removed so many. Zero: no limit.
  std::size_t max_rows = 0;

  /// It begins no batch when so much time has passed. Zero: no limit.
  std::chrono::milliseconds max_time{0};

  /// A batch that took longer is followed by one of half as many rows, though not below 50: a commit on
  /// a slow disk takes long for few rows, too. At least 1 ms.
  std::chrono::milliseconds max_batch_time{50};

  /// The share of the time in which it works, above 0 and up to 1; it rests for the other, so that
  /// consumers have the disk, and on SQLite the writer's lock, to themselves.
  double duty = 0.25;

  /// For transient errors (deadlock, lock time-out, lost connection): the runs of one batch, which is
  /// halved each time. Progress starts it over.
  RetryPolicy retry = {.max_attempts = 10};

  /// Ends waits and rests; the batch in hand finishes.
  std::stop_token stop = {};

  /// Told of each batch that removed something (`purged`: `rows`, `duration` of the batch) and of each
  /// `retry`, after the fact; what it throws is dropped. The consumer is the one above.
  std::function<void(const Event&)> observer = {};
};

/// Removes what was consumed longer ago than `older_than`, in batches that each commit. A message that
/// is delivered again after that runs again: `older_than` must be longer than the longest time after
/// which that can happen, by the broker or by hand. It has no default. See docs/operations/retention.md.
///
/// Only rows in state consumed go; those that are consuming, parked, torn or discarded stay. A row that
/// a consumer holds at that moment is left to the next purge. When it is done, it writes into
/// `txinbox_consumer` what was kept, how many rows went and when, also where a limit or the stop token
/// ended it; not for a consumer that nothing is recorded of, which has no row there. Several purges at once do no harm.
///
/// Transaction: its own, one for each batch; none may be open.
/// Blocking:    until all is gone or a limit is met. It waits for no row; on SQLite for the writer, up to
///              the session's busy time-out.
/// Limits:      `older_than` from 1 s to 100 years.
/// Errors:      `Error` invalid_argument for `older_than` and the options, invalid_key, transaction_open,
///              and what `verify` throws; a database error as it was, after its retries. What was removed
///              until then stays removed.
/// @return how many rows were removed.
std::size_t purge(soci::session& session, std::chrono::seconds older_than, PurgeOptions options = {});

/// The same for `txinbox_failed_message`: what is known of messages whose last failure is older. A
/// message that is parked or torn keeps its row. Traces of attempts that began longer ago and never
/// ended, of messages that did not fail otherwise, go as well.
std::size_t purge_failed(soci::session& session, std::chrono::seconds older_than, PurgeOptions options = {});

/// The same for `txinbox_conflicting_message`: contents whose last delivery is older.
std::size_t purge_conflicts(soci::session& session, std::chrono::seconds older_than, PurgeOptions options = {});

/// How many rows `purge`, `purge_failed` and `purge_conflicts` would remove now, of this consumer or, with an empty
/// name, of all. Removes nothing and writes nothing.
///
/// Transaction: none may be open.
/// Blocking:    for one statement, which looks at each row that is old enough, by the index on the time. It waits for
/// no
///              row.
/// Errors:      as purge.
std::size_t count_purgeable(soci::session& session, std::chrono::seconds older_than, const std::string& consumer = {});
std::size_t count_purgeable_failed(soci::session& session, std::chrono::seconds older_than,
                                   const std::string& consumer = {});
std::size_t count_purgeable_conflicts(soci::session& session, std::chrono::seconds older_than,
                                      const std::string& consumer = {});

TXINBOX_NAMESPACE_END
}  // namespace txinbox
