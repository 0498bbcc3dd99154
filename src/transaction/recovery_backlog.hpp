#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "transaction/claim_recovery.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The undecided claims that the calls of one consumer could not resolve, for example because the connection was lost
/// several times in a row. Later calls of the consumer resolve them.
///
/// Any thread may call any function.
class RecoveryBacklog {
 public:
  /// Takes over the runs that this call could not resolve, if they have undecided claims.
  void add(ClaimRecovery&);

  /// Resolves the claims that are visible on this session, outside a transaction. It does nothing if there are none, or
  /// if the last attempt was less than a second ago. It waits for no lock if none of the claims is in the table.
  ///
  /// It ignores the database's errors: if the session is broken, the caller notices it. After
  /// `backend::undecided_time`, it gives up: the lease of the claims has ended, so other deliveries count them as torn.
  void resolve(backend::Session&);

  /// Whether `resolve` may have something to do, now or within a second. It is false while another thread does it.
  bool has_due() const noexcept { return has_due_; }

  /// Returns the keys that `resolve` has marked as torn since the last call.
  std::vector<std::string> take_torn();

 private:
  using Clock = std::chrono::steady_clock;

  std::atomic<bool> has_due_ = false;
  std::atomic<bool> has_torn_ = false;
  std::mutex mutex_;
  ClaimRecovery recovery_;
  std::vector<std::string> torn_;
  Clock::time_point next_attempt_{};
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
