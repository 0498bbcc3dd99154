#include "transaction/recovery_backlog.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

void RecoveryBacklog::add(ClaimRecovery& call) {
  if (!call.has_undecided()) return;
  const std::scoped_lock lock(mutex_);
  recovery_.adopt_undecided(call);
  next_attempt_ = {};
  empty_ = !recovery_.has_undecided();
}

void RecoveryBacklog::resolve(backend::Session& session) noexcept {
  constexpr std::chrono::seconds pause{1};
  if (empty_) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;  // another thread resolves them
  const Clock::time_point now = Clock::now();
  if (now < next_attempt_) return;
  next_attempt_ = now + pause;
  recovery_.drop_runs_before(now - backend::undecided_time);
  try {
    recovery_.resolve(session);
  } catch (...) {  // NOLINT(bugprone-empty-catch): documented
  }
  (void)recovery_.take_torn();  // the calls of these messages have ended
  empty_ = !recovery_.has_undecided();
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
