#pragma once

#include <vector>

#include "torture/broker.hpp"
#include "torture/evidence.hpp"
#include "torture/imbalance.hpp"
#include "torture/plan.hpp"

namespace txinbox::torture {

/// What a consumer promises of its handler's effects.
enum class Promise { exactly_once, at_least_once };

/// Compares what the database holds with what the broker sent: each key has exactly one effect and one
/// row, the effect is the right one, each stored result is that of the run that took effect, every
/// account balances, and nothing else is there.
///
/// Of a key that was never acknowledged, that is an imbalance itself; its effect and its row may be
/// there, but only both.
///
/// Under leases a key has one effect or more, and `check_leased` says which. The stored result is that of the
/// run under the lease that completed the key.
std::vector<Imbalance> check(const Plan& plan, const std::vector<KeyLedger>& keys, const Evidence& evidence,
                             Promise promise = Promise::exactly_once);

}  // namespace txinbox::torture
