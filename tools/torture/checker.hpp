#pragma once

#include <vector>

#include "torture/broker.hpp"
#include "torture/evidence.hpp"
#include "torture/imbalance.hpp"
#include "torture/plan.hpp"

namespace txinbox::torture {

/// The promise of a consumer about its handler's effects.
enum class Promise { exactly_once, at_least_once };

/// Compares the database with what the broker sent. Each key has exactly one effect and one row. The effect is the
/// planned transfer. Each stored result is that of the run that took effect. Every account balances. Nothing else is
/// there.
///
/// A key that was never acknowledged is an imbalance. It may have both its effect and its row, or neither.
///
/// Under leases a key has one effect or more, and `check_leased` says which. The stored result is that of the
/// run under the lease that completed the key.
std::vector<Imbalance> check(const Plan& plan, const std::vector<KeyLedger>& keys, const Evidence& evidence,
                             Promise promise = Promise::exactly_once);

}  // namespace txinbox::torture
