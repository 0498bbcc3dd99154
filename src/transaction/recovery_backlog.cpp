#include "transaction/recovery_backlog.hpp"

#include <iterator>
#include <utility>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

void RecoveryBacklog::add(ClaimRecovery& call) {
  if (!call.has_undecided()) return;
  const std::scoped_lock lock(mutex_);
  recovery_.adopt_undecided(call);
  next_attempt_ = {};
  has_due_ = true;
}

/// Other threads find nothing to do while this thread resolves the runs, and nobody waits for it.
void RecoveryBacklog::resolve(backend::Session& session) {
  constexpr std::chrono::seconds pause{1};
  if (!has_due_) return;
  ClaimRecovery due;
  {
    const std::scoped_lock lock(mutex_);
    const Clock::time_point now = Clock::now();
    if (now < next_attempt_) return;
    recovery_.drop_runs_before(now - backend::undecided_time);
    due.adopt_undecided(recovery_);
    has_due_ = false;
  }
  due.resolve_visible(session);
  const std::scoped_lock lock(mutex_);
  recovery_.adopt_undecided(due);
  std::ranges::move(due.take_torn(), std::back_inserter(torn_));
  next_attempt_ = Clock::now() + pause;
  has_due_ = recovery_.has_undecided();
  has_torn_ = !torn_.empty();
}

std::vector<std::string> RecoveryBacklog::take_torn() {
  if (!has_torn_) return {};
  const std::scoped_lock lock(mutex_);
  has_torn_ = false;
  return std::exchange(torn_, {});
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
