#include "sim/workloads/handler_act.hpp"

#include <array>

#include "sim/threads.hpp"

namespace txinbox::sim {

HandlerAct draw_act(const Plan& plan, bool may_be_stuck) {
  if (may_be_stuck && threads().happens(plan.stuck_rate)) return HandlerAct::is_stuck;
  if (!threads().happens(plan.special_rate)) return HandlerAct::succeeds;
  constexpr std::array acts{
      HandlerAct::fails_at_first, HandlerAct::postpones,          HandlerAct::is_slow,
      HandlerAct::refuses,        HandlerAct::goes_back,          HandlerAct::fails,
      HandlerAct::swallows,       HandlerAct::rolls_back,         HandlerAct::writes_after_rollback,
      HandlerAct::commits,        HandlerAct::commits_and_throws, HandlerAct::writes_after_commit,
      HandlerAct::begins,         HandlerAct::swallows_deadlock,  HandlerAct::commits_another};
  const HandlerAct act = acts[threads().any_of(acts.size())];
  // Without a limit for attempts, a message that always fails would never end. With a breaker, it ends only if others
  // are consumed. With an operator it is repaired when the faults end. A torn one is a dead letter at once.
  const bool parks = plan.max_attempts > 0 && (plan.breaker == 0 || plan.holds_parked);
  const bool ends = parks || can_succeed(act, *plan.personality) || commits(act, *plan.personality);
  if (!ends) return HandlerAct::fails_at_first;
  const bool is_forbidden = act == HandlerAct::refuses && plan.handlers != HandlerKind::one;  // in a set handler
  return is_forbidden ? HandlerAct::succeeds : act;
}

bool can_succeed(HandlerAct act, const Personality& database) noexcept {
  if (act == HandlerAct::begins) return database.nested_begin == NestedBegin::is_ignored;
  if (act == HandlerAct::swallows) return !database.error_aborts_transaction;
  if (act == HandlerAct::swallows_deadlock) return !database.error_aborts_transaction && !database.deadlock_rolls_back;
  return act < HandlerAct::fails;
}

bool commits(HandlerAct act, const Personality& database) noexcept {
  if (act == HandlerAct::begins) return database.nested_begin == NestedBegin::commits;
  return act >= HandlerAct::commits && !database.refuses_commit_of_handler;
}

}  // namespace txinbox::sim
