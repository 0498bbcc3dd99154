#pragma once

#include <chrono>
#include <memory>

#include <txinbox/retention.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

class Pool;

struct PurgerOptions {
  /// From the end of one purge to the start of the next, on average: each wait is between half and one
  /// and a half times as long, so that the processes of a service do not purge in step. At least 1 ms.
  /// The first purge comes within one such time of the start, and within a minute.
  std::chrono::milliseconds interval{std::chrono::minutes(10)};

  /// If not zero, failed and conflicting messages older than this go, too, as `purge_failed` and
  /// `purge_conflicts` do it.
  std::chrono::seconds failed_older_than{0};
  std::chrono::seconds conflicts_older_than{0};

  /// How each purge goes about it. Its stop token ends the purger, too. Its observer is called on the
  /// purger's thread, and is told of a purge that failed as well (`failed`, with `error`); it is tried
  /// again after the interval.
  PurgeOptions purge = {};
};

/// Purges in the background, on one thread, as `purge` does: for a service that would rather not have a
/// job for it. Any number of processes may have one.
///
/// It takes a connection of the pool for each batch, and gives it back while it rests.
///
/// Threads:   construct and destroy it on any; it is on its own. The `Pool` object may be moved or end
///            before it.
/// Processes: it runs in the parent only. A child of fork() may destroy it, which does nothing.
class Purger {
 public:
  /// Errors: `Error` invalid_argument, invalid_key, as `purge`.
  Purger(Pool&, std::chrono::seconds older_than, PurgerOptions = {});
  Purger(Purger&&) noexcept;
  Purger& operator=(Purger&&) noexcept;

  /// Stops.
  ///
  /// Blocking: until the batch in hand ends, usually some milliseconds. On a network that has fallen silent at most
  ///           `acquire_timeout` or `connect_timeout`, and `statement_timeout` or `lock_timeout` and 5 s more.
  ~Purger();

  /// Asks it to stop, and does not wait.
  void request_stop() noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
