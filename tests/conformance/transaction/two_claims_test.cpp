// Two claims in one transaction: first the message id, and then the business key. docs/guides/keys-and-content.md
// describes them.

#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"

namespace txinbox::test {
namespace {

/// Returns the result of the last claim.
Claim deliver(soci::session& sql, const std::string& id, const std::string& key, bool fails = false) {
  Transaction transaction(sql);
  Claim claim = transaction.claim("orders.ids", {.business_key = id});
  if (claim == Claim::claimed) claim = transaction.claim("orders", {.business_key = key, .message_id = id});
  if (claim == Claim::claimed) sql << "insert into effect values (:key)", soci::use(key);
  if (fails) throw std::runtime_error("no");
  transaction.commit();
  return claim;
}

TEST_CASE("a known id is a duplicate, and a known key with a new id is a duplicate and makes the id known") {
  EffectDatabase db;
  const auto sql = db.session();
  CHECK(deliver(*sql, "m1", "order123") == Claim::claimed);
  CHECK(deliver(*sql, "m1", "order123") == Claim::already_consumed);
  CHECK(db.claims() == 2);
  CHECK(deliver(*sql, "m2", "order123") == Claim::already_consumed);
  CHECK(db.claims() == 3);  // m2 is known now
  CHECK(deliver(*sql, "m2", "order456") == Claim::already_consumed);
  CHECK(deliver(*sql, "m3", "order456") == Claim::claimed);
  CHECK(db.effects_of("order123") == 1);
  CHECK(db.effects_of("order456") == 1);
}

TEST_CASE("a delivery that fails leaves neither its id nor its key") {
  EffectDatabase db;
  const auto sql = db.session();
  CHECK_THROWS_AS(deliver(*sql, "m1", "order123", true), std::runtime_error);
  CHECK(db.claims() == 0);
  CHECK(db.effects() == 0);
  CHECK(deliver(*sql, "m1", "order123") == Claim::claimed);
  CHECK(db.effects() == 1);
}

TEST_CASE("concurrent copies with the same id and with other ids: each key takes effect once, without a deadlock") {
  EffectDatabase db;
  constexpr int keys = 20;
  std::atomic<int> claimed = 0;
  std::vector<std::thread> workers;
  const std::array<std::string, 4> ids{"a", "a", "b", "c"};
  for (const std::string& id : ids) {
    workers.emplace_back([&db, &claimed, id] {
      const auto sql = db.session();
      for (int i = 0; i < keys; ++i) {
        const std::string key = "k" + std::to_string(i);
        if (deliver(*sql, id + key, key) == Claim::claimed) ++claimed;
      }
    });
  }
  for (auto& each : workers) each.join();
  CHECK(claimed == keys);
  CHECK(db.effects() == keys);
  CHECK(db.claims() == 4 * keys);  // three ids and the key
}

}  // namespace
}  // namespace txinbox::test
