// One node removes rows while the others consume their keys. A purge can do this.

#include <array>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "cluster/cluster.hpp"
#include "cluster/tally.hpp"

namespace txinbox::test {
namespace {

constexpr int keys = 20;
constexpr int rounds = 20;
constexpr int removals = 200;

std::string name_of(int key) { return fmt::format("key{}", key); }

/// Removes rows on all nodes, and returns how often the row of each key was removed.
std::array<int, keys> remove_some(const ClusterDatabase& db, Tally& tally) {
  std::array<int, keys> removed{};
  const auto sql = db.session(3);
  std::mt19937 random{std::random_device{}()};
  for (int i = 0; i < removals; ++i) {
    const auto key = random() % keys;
    try {
      if (forget(*sql, "svc", name_of(static_cast<int>(key)))) ++removed.at(key);
    } catch (const soci::soci_error&) {  // a consumer committed first
      tally.note(std::current_exception());
    }
  }
  return removed;
}

TEST_CASE("a key takes effect once more for each time that its row was removed on another node") {
  const ClusterDatabase db;
  Tally tally;
  const auto deliver_all = [&](TxConsumer& consumer) {
    for (int key = 0; key < keys; ++key) {
      ++tally.deliveries;
      (void)consumer.consume({.business_key = name_of(key)}, add_effect);
    }
  };
  std::vector<std::thread> workers;
  for (int node = 1; node <= nodes; ++node) {
    workers.emplace_back([&, node] {
      Pool pool = db.pool(node);
      TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 50}});
      for (int round = 0; round < rounds; ++round) deliver_all(consumer);
    });
  }
  const auto removed = remove_some(db, tally);
  for (std::thread& each : workers) each.join();
  for (int node = 1; node <= nodes; ++node) db.number(node, "select 1");
  Pool pool = db.pool(1);
  TxConsumer last(pool, "svc");
  deliver_all(last);

  CHECK(tally.unexpected == 0);
  int again = 0;
  for (int key = 0; key < keys; ++key) {
    CAPTURE(key);
    CHECK(db.effects_of(name_of(key)) == 1 + removed.at(static_cast<std::size_t>(key)));
    again += removed.at(static_cast<std::size_t>(key));
  }
  CHECK(again > 0);
  CHECK(db.claims() == keys);
  fmt::print("    {} keys, {} removals, {} deliveries\n", keys, again, tally.deliveries.load());
}

}  // namespace
}  // namespace txinbox::test
