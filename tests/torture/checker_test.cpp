#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "torture/checker.hpp"
#include "torture/checker_storm.hpp"

using namespace txinbox::torture;

namespace {

/// A storm that balances. The tests change it.
struct Balanced : StormRecord {
  Balanced() {
    for (std::uint64_t i = 0; i < 30; ++i) add(i);
  }

  void add(std::uint64_t i) {
    const std::string run = "1-" + std::to_string(i);
    add_key(i);
    add_effect(i, run);
    complete(i, run);
  }

  std::vector<Imbalance> check() const { return txinbox::torture::check(plan, keys, evidence); }

  /// The only imbalance.
  Imbalance wrong() const {
    const auto all = check();
    REQUIRE(all.size() == 1);
    return all.front();
  }

  std::size_t first(bool stores) const {
    std::size_t i = 0;
    while (plan.key(i).stores != stores) ++i;
    return i;
  }
};

}  // namespace

TEST_CASE("a correct storm balances") { CHECK(Balanced().check().empty()); }

TEST_CASE("a lost effect is named, and a doubled one with its runs") {
  Balanced lost;
  lost.evidence.ledger.erase(lost.evidence.ledger.begin() + static_cast<std::ptrdiff_t>(lost.first(false)));
  CHECK(lost.wrong() == Imbalance{Plan::business_key(lost.first(false)), "effects", "1", "0"});

  Balanced doubled;
  doubled.evidence.ledger.push_back(doubled.evidence.ledger[0]);
  doubled.evidence.ledger.back().run = "2-1";
  CHECK(doubled.wrong() == Imbalance{Plan::business_key(0), "effects", "1", "2: run 1-0, run 2-1"});
}

TEST_CASE("a key whose claim and effect are both lost is named twice") {
  Balanced lost;
  lost.evidence.ledger.pop_back();
  lost.evidence.inbox.pop_back();
  const auto all = lost.check();
  REQUIRE(all.size() == 2);
  CHECK(all[0].what == "effects");
  CHECK(all[1] == Imbalance{Plan::business_key(29), "rows in the inbox", "1", "0"});
}

TEST_CASE("another transfer than the key's, and a balance that is off, are named") {
  Balanced other;
  other.evidence.ledger[3].transfer.amount += 1;
  CHECK(other.wrong().what == "the transfer");

  Balanced off;
  off.evidence.balances[4] += 1;
  CHECK(off.wrong().subject == "account 4");
  CHECK(off.wrong().what == "the balance");

  Balanced gone;
  gone.evidence.balances.erase(4);
  CHECK(gone.wrong().found == "no such account");
}

TEST_CASE("a key that was never sent is named") {
  Balanced effect;
  effect.evidence.ledger.push_back({"9-9", "ORDER-1", {}});
  CHECK(effect.wrong() == Imbalance{"ORDER-1", "an effect of a key that was never sent", "0", "1: run 9-9"});

  Balanced row;
  row.evidence.inbox.push_back({"order-1  ", "", "consumed"});
  CHECK(row.wrong().subject == "order-1  ");
}

TEST_CASE("a row in another state, or of another message, is named") {
  Balanced torn;
  torn.evidence.inbox[0].state = "torn";
  CHECK(torn.wrong() == Imbalance{Plan::business_key(0), "the row's state", "consumed", "torn"});

  Balanced merged;
  merged.evidence.inbox[1].message_id = "message-11-0";
  CHECK(merged.wrong().what == "the row's message id");
}

TEST_CASE("the stored result is that of the run that took effect, and consumers have reported it") {
  Balanced other;
  const std::size_t stores = other.first(true);
  other.evidence.inbox[stores].stored = "7-7";
  other.keys[stores].stored = "7-7";
  CHECK(other.wrong() ==
        Imbalance{Plan::business_key(stores), "the stored result", "1-" + std::to_string(stores), "7-7"});

  Balanced told;
  told.keys[stores].stored = "7-7";
  CHECK(told.wrong().what == "the stored result that consumers reported");

  Balanced missing;
  missing.evidence.inbox[stores].stored.reset();
  missing.keys[stores].stored.reset();
  CHECK(missing.wrong().found == "none");

  Balanced unasked;
  unasked.evidence.inbox[unasked.first(false)].stored = "1-1";
  CHECK(unasked.wrong().expected == "none");
}

TEST_CASE("a key that was never acknowledged is named, and may have its effect and its row, or neither") {
  Balanced with;
  with.keys[2] = {.outstanding = 1};
  CHECK(with.wrong() == Imbalance{Plan::business_key(2), "deliveries that were never acknowledged", "0", "1"});

  Balanced without;
  without.add(30);
  without.keys[30] = {.outstanding = 1};
  const Balanced before;
  without.evidence = before.evidence;
  CHECK(without.wrong().what == "deliveries that were never acknowledged");

  Balanced half;
  half.keys[2] = {.outstanding = 1};
  half.evidence.ledger.erase(half.evidence.ledger.begin() + 2);
  CHECK(half.check().size() == 2);
}
