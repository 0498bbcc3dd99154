#pragma once

// The acts of the handlers of the consumers in transactions.

#include "sim/plan.hpp"

namespace txinbox::sim {

/// The behaviour of the handler of a message. Those before `fails` succeed at last. Those from `commits` on commit
/// something, if the database lets them.
enum class HandlerAct {
  succeeds,
  fails_at_first,
  postpones,
  is_slow,
  refuses,                ///< It refuses the message, so its effect is rolled back.
  goes_back,              ///< It rolls back to a savepoint of its own, and goes on.
  is_stuck,               ///< It asks for a later time until the world is healed.
  fails,                  ///< Always.
  swallows,               ///< It goes on after a statement that fails.
  swallows_deadlock,      ///< It goes on after a deadlock.
  rolls_back,             ///< It rolls the transaction back, and returns.
  writes_after_rollback,  ///< It rolls the transaction back, and goes on with SQL.
  commits,                ///< It commits the transaction.
  commits_and_throws,     ///< It commits the transaction, and fails.
  writes_after_commit,    ///< It commits the transaction, and goes on with SQL.
  begins,                 ///< It begins another transaction.
  commits_another,        ///< It rolls the transaction back, and commits its effect in another one.
};

/// Chooses the behaviour of a message's handler. `may_be_stuck`: the message may wait until the world is healed.
HandlerAct draw_act(const Plan&, bool may_be_stuck);

/// Whether the handler returns at last, and has its effect then.
bool can_succeed(HandlerAct, const Personality&) noexcept;

/// Whether the handler commits the claims of its batch, or its effect without its claim.
bool commits(HandlerAct, const Personality&) noexcept;

}  // namespace txinbox::sim
