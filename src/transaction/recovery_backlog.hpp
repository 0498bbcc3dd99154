#pragma once

#include <atomic>
#include <chrono>
#include <mutex>

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

  /// Resolves the claims on this session, outside a transaction. It does nothing if there are none, or if the last
  /// attempt was less than a second ago.
  ///
  /// It ignores its own errors: if the session is broken, the caller notices it. After `backend::undecided_time`, it
  /// gives up: the lease of the claims has ended, so other deliveries count them as torn.
  void resolve(backend::Session&) noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  std::atomic<bool> empty_ = true;
  std::mutex mutex_;
  ClaimRecovery recovery_;
  Clock::time_point next_attempt_{};
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
