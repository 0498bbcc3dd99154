#pragma once

/// @file
/// Removes rows: the row of one key, or all rows that are old.

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <txinbox/connection_ref.hpp>
#include <txinbox/consumer_options.hpp>
#include <txinbox/listener.hpp>
#include <txinbox/operator_action.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// Removes the row of one key, in any state. The next delivery runs the handler again. It is for an operator who knows
/// that the effect is missing, or that it must be repeated.
///
/// @param connection any connection to the database of the inbox.
/// @param consumer the consumer's name.
/// @param business_key the key of the row.
/// @param by who does it, and why: a row of `txinbox_audit` if there was a row. None: no row is written.
///
/// @transaction its own, with the row for the audit; none may be open.
/// @blocking    it waits for a transaction that holds the key.
/// @errors      `Error` invalid_key, transaction_open, schema_missing; a database error as it was. With `by`, also
///              invalid_argument, and what `verify` throws.
/// @return whether there was a row.
bool forget(ConnectionRef connection, std::string_view consumer, std::string_view business_key,
            const std::optional<OperatorAction>& by = {});

/// The rows that a purge removes.
enum class Purgeable {
  consumed,  ///< Rows of `txinbox_consumed_message` in the state consumed, by the time at which the message was
             ///< consumed. Rows that are consuming, parked, torn or discarded stay.
  failed,  ///< Rows of `txinbox_failed_message`, by the time of the message's last failure. A message that is parked or
           ///< torn keeps its row. Also markers of attempts (`count_starts`) that are as old and never ended,
           ///< if the message has no failure.
  conflicts,  ///< Records of conflicting contents, `txinbox_conflicting_message`, by the time of the last delivery.
};

/// How much a purge removes, and how fast. With these defaults it removes a few hundred rows at a time, which takes
/// some milliseconds. Then it pauses three times as long.
struct PurgeOptions {
  /// The rows to remove.
  Purgeable what = Purgeable::consumed;

  /// Counts the rows that would be removed, and removes and writes nothing.
  bool dry_run = false;

  /// Who purges, and why. The purge then writes two rows of `txinbox_audit`: one before its first batch, with an action
  /// such as "purge_consumed_begin", and one at its end, "purge_consumed", with the number of rows. None: no row is
  /// written. A dry run writes none.
  std::optional<OperatorAction> by = {};

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
  RetryPolicy retry = {.max_runs = 10};

  /// Once it is set, waits and pauses end. The present batch finishes.
  std::stop_token stop = {};

  /// They get an event after each batch that removed rows (`purged`, with `rows` and the `duration` of the batch) and
  /// at each `retry`. `Event::consumer` is `consumer`.
  Listeners listeners = {};
};

/// Removes the rows that are older than `older_than`, in batches. Each batch commits. `PurgeOptions::what` says which
/// rows.
///
/// A message whose consumed row was removed runs again if it is delivered again. So `older_than` must be longer than
/// the longest time after which a message can be delivered again, by the broker or by hand. It has no default. See
/// docs/operations/retention.md.
///
/// A row that a consumer holds at that moment stays for the next purge. Any number of purges may run at once.
///
/// At the end of a purge of consumed messages, it writes to `txinbox_consumer`: `older_than`, how many rows it removed,
/// and the time. It also does so if a limit or the stop token ended it, or if an error occurred after it had removed
/// rows. It adds no row for a consumer that has no rows, because the name can be a typing error.
///
/// @transaction its own, one for each batch; none may be open.
/// @blocking    until all old rows are removed or a limit is reached. It waits for no row. On SQLite it waits for the
///              writer's lock, at most the session's busy time-out.
/// @limits      `older_than` from 1 s to 100 years.
/// @errors      `Error` invalid_argument for `older_than` and the options, invalid_key, transaction_open, and what
///              `verify` throws; a database error as it was, after its retries. Rows that were removed before the error
///              stay removed. With `PurgeOptions::by`, also schema_missing if the migration V3 was not applied.
/// @return how many rows were removed. With `dry_run`: how many would be, at most `max_rows`; it takes one or two
///         statements, which read all rows that are old enough by the index on the time.
std::size_t purge(ConnectionRef connection, std::chrono::seconds older_than, PurgeOptions options = {});

class Pool;

/// When and how a `Purger` purges.
struct PurgerOptions {
  /// The average time from the end of one purge to the start of the next, from 1 ms to a year. Each wait is a random
  /// time between 0.5 and 1.5 times the interval, so that the processes of a service do not all purge at the same time.
  /// The first purge begins within the interval, and within a minute.
  std::chrono::milliseconds interval{std::chrono::minutes(10)};

  /// If not zero, the purger also removes `Purgeable::failed` rows with this time, from 1 s to 100 years.
  std::chrono::seconds failed_older_than{0};

  /// If not zero, the purger also removes `Purgeable::conflicts` rows with this time, from 1 s to 100 years.
  std::chrono::seconds conflicts_older_than{0};

  /// The options of each purge. Its stop token also ends the purger. Its listeners are called on the purger's thread.
  /// If a purge fails, they get an event `failed` with the error, and the purger tries again after the interval. Its
  /// `what` and `dry_run` must have their defaults.
  PurgeOptions purge = {};
};

/// Calls `purge` in the background, on a thread of its own. It is for services without a separate job for this. Any
/// number of processes may have one.
///
/// It borrows a connection of the pool for each batch, and gives it back during each pause.
///
/// @threads   any thread may create and destroy it. The `Pool` object may be moved or destroyed before it.
/// @processes it runs only in the parent. A child of fork() may destroy its copy; this does nothing.
class Purger {
 public:
  /// Starts the thread. `older_than` is as in `purge`.
  ///
  /// @errors `Error` invalid_argument, invalid_key, as `purge`.
  Purger(Pool&, std::chrono::seconds older_than, PurgerOptions = {});

  /// Takes the thread over. The moved-from purger does nothing.
  Purger(Purger&&) noexcept;

  /// Stops its own thread and waits for it, as the destructor does. Then it takes the other's thread over.
  Purger& operator=(Purger&&) noexcept;

  /// Stops the thread and waits for it.
  ///
  /// @blocking until the present batch ends, usually some milliseconds. If the network is silent: at most the longer of
  ///           `acquire_timeout` and `connect_timeout`, plus the longer of `statement_timeout` and `lock_timeout`, plus
  ///           5 s.
  ~Purger();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

TXINBOX_API_END
}  // namespace txinbox
