#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "torture/checker.hpp"

namespace txinbox::torture {

/// The tables after a correct storm in which the keys took effect one after the other, in their order.
struct StormRecord {
  StormRecord() {
    for (int account = 0; account < account_count; ++account) evidence.balances[account] = initial_balance;
  }

  void add_key(std::uint64_t i) {
    keys.push_back({.consumed = 1, .is_acknowledged = true});
    evidence.inbox.push_back({plan.key(i).business_key, "message-" + std::to_string(i) + "-0", "consumed"});
  }

  void add_effect(std::uint64_t i, const std::string& run, std::int64_t fence = 0, std::int64_t place = 0) {
    const KeyPlan key = plan.key(i);
    evidence.ledger.push_back({run, key.business_key, key.transfer, fence, place});
    evidence.balances[key.transfer.from] -= key.transfer.amount;
    evidence.balances[key.transfer.to] += key.transfer.amount;
  }

  /// If the key stores a result, the ledger's run is the stored result, and the consumers reported it.
  void complete(std::uint64_t i, const std::string& run) {
    if (!plan.key(i).stores) return;
    keys[i].stored = run;
    evidence.inbox[i].stored = run;
  }

  Plan plan{1};
  std::vector<KeyLedger> keys;
  Evidence evidence;
};

}  // namespace txinbox::torture
