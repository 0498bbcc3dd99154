// What a guarded `consume` costs against the unguarded transaction that people write by hand: medians
// of the ratios of interleaved rounds.
//
// Usage: taskset -c 0 txinbox_guard_cost URL [ROUNDS] [MESSAGES A ROUND]
// It makes its tables in an empty database, and expects the caller to pin client and server.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "by_hand.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <class F>
double microseconds(int messages, F&& one) {
  const auto start = Clock::now();
  for (int i = 0; i < messages; ++i) one(i);
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / messages;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: txinbox_guard_cost URL [ROUNDS] [MESSAGES]\n");
    return 2;
  }
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 31;
  const int messages = argc > 3 ? std::atoi(argv[3]) : 300;

  txinbox::Pool pool = txinbox::open_pool(argv[1], {.connections = 2});
  auto connection = pool.acquire();
  soci::session& sql = connection;
  txinbox::migrate(sql);
  sql << "drop table if exists account";
  sql << "create table account (id integer primary key, n integer not null)";
  sql << "insert into account values (1, 0)";
  const auto hand = txinbox::bench::by_hand(sql);
  txinbox::TxConsumer consumer(pool, "guarded");
  const auto update = [](soci::session& s, txinbox::Delivery&) { s << "UPDATE account SET n = n + 1 WHERE id = 1"; };

  std::vector<double> by_hand;
  std::vector<double> guarded;
  std::vector<double> ratios;
  std::vector<double> duplicates;
  for (int round = 0; round < rounds; ++round) {
    const auto key = [round](int i) { return fmt::format("order-{}-{}", round, i); };
    by_hand.push_back(microseconds(messages, [&](int i) { hand->consume(key(i)); }));
    guarded.push_back(microseconds(messages, [&](int i) { (void)consumer.consume({.business_key = key(i)}, update); }));
    ratios.push_back(guarded.back() / by_hand.back());
    duplicates.push_back(
        microseconds(messages, [&](int i) { (void)consumer.consume({.business_key = key(i)}, update); }));
  }
  fmt::print("{:<12} by hand {:7.1f} us   guarded {:7.1f} us   ratio {:.3f}   duplicate {:7.1f} us\n",
             sql.get_backend_name(), median(by_hand), median(guarded), median(ratios), median(duplicates));
  return 0;
}
