#pragma once

/// @file
/// Removes old rows in the background.

#include <chrono>
#include <memory>

#include <txinbox/retention.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

class Pool;

/// When and how a `Purger` purges.
struct PurgerOptions {
  /// The average time from the end of one purge to the start of the next, from 1 ms to a year. Each wait is a random
  /// time between 0.5 and 1.5 times the interval, so that the processes of a service do not all purge at the same time.
  /// The first purge begins within the interval, and within a minute.
  std::chrono::milliseconds interval{std::chrono::minutes(10)};

  /// If not zero, the purger also calls `purge_failed` with this time, from 1 s to 100 years.
  std::chrono::seconds failed_older_than{0};

  /// If not zero, the purger also calls `purge_conflicts` with this time, from 1 s to 100 years.
  std::chrono::seconds conflicts_older_than{0};

  /// The options of each purge. Its stop token also ends the purger. Its listeners are called on the purger's thread.
  /// If a purge fails, they get an event `failed` with the error, and the purger tries again after the interval.
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

  /// Asks the thread to stop, and does not wait for it.
  void request_stop() noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
