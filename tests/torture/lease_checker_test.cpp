#include <cstddef>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "torture/checker.hpp"
#include "torture/checker_storm.hpp"

using namespace txinbox::torture;

namespace {

/// A storm under leases that balances, in which every third key took effect twice. The tests change it.
struct Balanced : StormRecord {
  Balanced() {
    for (std::uint64_t i = 0; i < 30; ++i) {
      add_key(i);
      for (std::int64_t place = 1; place <= (i % 3 == 0 ? 2 : 1); ++place) add_effect(i, 100 * place, place);
      complete(i, evidence.ledger.back());
    }
  }

  void add_effect(std::uint64_t i, std::int64_t fence, std::int64_t place) {
    StormRecord::add_effect(i, std::to_string(i) + "-" + std::to_string(fence), fence, place);
    evidence.resources[plan.key(i).business_key] = {.fence = fence, .effects = place};
  }

  void complete(std::uint64_t i, const LedgerLine& line) {
    evidence.inbox[i].fence = line.fence;
    StormRecord::complete(i, line.run);
  }

  std::vector<Imbalance> check() const { return txinbox::torture::check(plan, keys, evidence, Promise::at_least_once); }

  bool names(const std::string& what) const {
    const auto all = check();
    for (const Imbalance& each : all) {
      if (each.what == what) return true;
    }
    return false;
  }
};

}  // namespace

TEST_CASE("under leases, keys that took effect more than once balance, and in a transaction they do not") {
  const Balanced storm;
  CHECK(storm.check().empty());
  CHECK_FALSE(check(storm.plan, storm.keys, storm.evidence).empty());
}

TEST_CASE("under leases, a key that is acknowledged and took no effect is named") {
  Balanced lost;
  lost.evidence.ledger.erase(lost.evidence.ledger.begin() + 2);  // of key 1
  lost.evidence.resources.erase(Plan::business_key(1));
  CHECK(lost.names("effects"));
  CHECK(lost.names("the lease that completed the key"));
  CHECK(lost.names("the balance"));
}

TEST_CASE("under leases, a key that is acknowledged and not completed is named") {
  Balanced consuming;
  consuming.evidence.inbox[1].state = "consuming";
  const auto all = consuming.check();
  REQUIRE(all.size() == 1);
  CHECK(all.front() == Imbalance{Plan::business_key(1), "the row's state", "consumed", "consuming"});

  Balanced gone;
  gone.evidence.inbox.erase(gone.evidence.inbox.begin() + 1);
  CHECK(gone.names("rows in the inbox"));
}

TEST_CASE("an older effect after a newer one is named, and so is another of the same fence") {
  for (const std::int64_t late : {200, 150}) {
    Balanced storm;
    storm.add_effect(0, late, 3);
    storm.evidence.resources[Plan::business_key(0)].fence = 200;
    CHECK(storm.names("an older effect after a newer one"));
  }
}

TEST_CASE("a completion by another lease than that of the last effect is named") {
  Balanced storm;
  storm.evidence.inbox[0].fence = 100;
  CHECK(storm.names("the lease that completed the key"));
}

TEST_CASE("a resource that has seen more or less than the ledger says is named") {
  Balanced effects;
  effects.evidence.resources[Plan::business_key(1)].effects = 2;
  CHECK(effects.names("the effects that the resource accepted"));

  Balanced fence;
  fence.evidence.resources[Plan::business_key(1)].fence = 101;
  CHECK(fence.names("the fence that the resource has seen"));

  Balanced place;
  place.evidence.ledger[0].place = 3;
  CHECK(place.names("the number of an effect"));
}

TEST_CASE("under leases, the stored result is that of the run that completed the key") {
  Balanced storm;
  std::size_t key = 0;
  while (key % 3 != 0 || !storm.plan.key(key).stores) ++key;
  const std::string earlier = std::to_string(key) + "-100";
  storm.evidence.inbox[key].stored = earlier;
  storm.keys[key].stored = earlier;
  const auto all = storm.check();
  REQUIRE(all.size() == 1);
  CHECK(all.front() == Imbalance{Plan::business_key(key), "the stored result", std::to_string(key) + "-200", earlier});
}
