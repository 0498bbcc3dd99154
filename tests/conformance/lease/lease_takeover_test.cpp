// Expired leases: which worker takes over, and what the former holder can still do.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/guard_cases.hpp"
#include "support/leases.hpp"
#include "support/outcomes.hpp"
#include "support/schema_tools.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a lease that ran out is taken over, with a greater fence, by either kind of consumer") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc");
  const auto sql = t.db.session();
  TxConsumer own(*sql, "svc");
  TxConsumer pooled(t.pool, "svc");
  const auto by_transaction = [&](TxConsumer& other) {
    CHECK(other.consume(order, add_effect).outcome == consumed);
    CHECK(t.db.effects() == 1);
  };
  int taken = 0;
  LeaseConsumer observed(t.pool, "svc", {.observer = [&](const Event& e) {
                           if (e.type == EventType::lease_taken_over) ++taken;
                         }});
  std::int64_t fence = 0;
  const auto slow = [&](Lease& lease) {
    fence = lease.fence();
    let_run_out(t.db);
    SUBCASE("a lease consumer") {
      CHECK(observed.consume(order, [&](Lease& next) { CHECK(next.fence() > fence); }).outcome == consumed);
      CHECK(taken == 1);
    }
    SUBCASE("a transaction in a pool") { by_transaction(pooled); }
    SUBCASE("a transaction on a session of the caller's") { by_transaction(own); }
    SUBCASE("a batch") {
      CHECK(outcomes(pooled.consume_batch(messages_of({"1", "order123", "2"}), add_effect)) ==
            Outcomes{consumed, consumed, consumed});
      CHECK(t.db.effects() == 3);
    }
    CHECK_THROWS_AS(lease.renew(), Error);
    CHECK(lease.stop_token().stop_requested());
  };
  // The slow worker gets an error, and has not changed its successor's row.
  CHECK(thrown_by([&] { (void)consumer.consume(order, slow); }) == "lease_lost");
  CHECK(t.db.number("select count(*) from txinbox_consumed_message where business_key = 'order123' and state = "
                    "'consumed'") == 1);
  CHECK(consumer.consume(order, must_not_run).outcome == duplicate);
}

TEST_CASE("a worker that was taken over can neither complete, release nor extend its successor's lease") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc");
  const auto expires = [&] { return t.db.text("select lease_expires_at from txinbox_consumed_message"); };
  const auto slow = [&](Lease& lease) {
    let_run_out(t.db);
    const auto successor = [&](Lease&) {
      const auto before = expires();
      CHECK(thrown_by([&] { lease.renew(); }) == "lease_lost");
      CHECK(expires() == before);
      CHECK(row_state(t.db) == "consuming");
    };
    CHECK(LeaseConsumer(t.pool, "svc").consume(order, successor).outcome == consumed);
  };
  SUBCASE("it returns") {
    CHECK(thrown_by([&] { (void)consumer.consume(order, slow); }) == "lease_lost");
  }
  SUBCASE("it throws") {
    CHECK_THROWS_AS((void)consumer.consume(order,
                                           [&](Lease& lease) {
                                             slow(lease);
                                             throw std::runtime_error("late");
                                           }),
                    std::runtime_error);
  }
  SUBCASE("it throws while its successor runs") {
    // The successor's handler runs in a thread that waits for the first to have given up.
    std::atomic<bool> running = false;
    std::atomic<bool> given_up = false;
    std::thread successor;
    CHECK_THROWS_AS((void)consumer.consume(order,
                                           [&](Lease&) {
                                             let_run_out(t.db);
                                             successor = std::thread([&] {
                                               CHECK(LeaseConsumer(t.pool, "svc")
                                                         .consume(order,
                                                                  [&](Lease&) {
                                                                    running = true;
                                                                    while (!given_up) std::this_thread::sleep_for(1ms);
                                                                    CHECK(row_state(t.db) == "consuming");
                                                                  })
                                                         .outcome == consumed);
                                             });
                                             while (!running) std::this_thread::sleep_for(1ms);
                                             throw std::runtime_error("late");
                                           }),
                    std::runtime_error);
    CHECK(LeaseConsumer(t.pool, "svc").consume(order, must_not_run).outcome == in_progress);
    given_up = true;
    successor.join();
  }
  CHECK(row_state(t.db) == "consumed");
}

TEST_CASE("the fence grows also after the row was forgotten") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc");
  std::int64_t last = 0;
  for (int i = 0; i < 4; ++i) {
    CHECK(consumer
              .consume(order,
                       [&](Lease& lease) {
                         CHECK(lease.fence() > last);
                         last = lease.fence();
                       })
              .outcome == consumed);
    CHECK(forget(*t.db.session(), "svc", "order123"));
    std::this_thread::sleep_for(2ms);  // SQLite's clock counts milliseconds
  }
}

TEST_CASE("a row that vanished while the handler ran is lost, not consumed") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc");
  CHECK(thrown_by([&] {
          (void)consumer.consume(order, [&](Lease&) { CHECK(forget(*t.db.session(), "svc", "order123")); });
        }) == "lease_lost");
  CHECK(t.db.claims() == 0);
  CHECK(consumer.consume(order, nothing).outcome == consumed);
}

TEST_CASE("many workers that find one lease run out: one takes over") {
  Leases t;
  for (int round = 0; round < 10; ++round) {
    const Message message{.business_key = "k" + std::to_string(round)};
    // A worker that died: its row stays.
    const std::thread::id main = std::this_thread::get_id();
    CHECK(thrown_by([&] {
            (void)LeaseConsumer(t.pool, "svc").consume(message, [&](Lease&) {
              CHECK(main == std::this_thread::get_id());
              let_run_out(t.db);
              std::atomic<int> runs = 0;
              std::vector<std::thread> workers;
              for (int i = 0; i < 4; ++i) {
                workers.emplace_back([&] {
                  (void)LeaseConsumer(t.pool, "svc").consume(message, [&](Lease&) {
                    ++runs;
                    std::this_thread::sleep_for(5ms);
                  });
                });
              }
              for (auto& each : workers) each.join();
              CHECK(runs == 1);
            });
          }) == "lease_lost");
  }
}

TEST_CASE("a takeover that had to wait for the row gets its full lease") {
  Leases t;
  if (on_sqlite3()) return;  // readers see the old row, and the writer's lock is the whole file's
  LeaseConsumer consumer(t.pool, "svc", {.lease = 60s});
  const std::string a_minute_from_now = on_mysql() ? "select cast(utc_timestamp(6) + interval 1 minute as char)"
                                                   : "select cast(clock_timestamp() + interval '1 minute' as text)";
  CHECK(thrown_by([&] {
          (void)consumer.consume(order, [&](Lease&) {
            let_run_out(t.db);
            const auto sql = t.db.session();
            sql->begin();
            *sql << "update txinbox_consumed_message set attempts = 7";
            std::string row_was_free;
            std::thread waiting([&] {
              CHECK(consumer
                        .consume(order,
                                 [&](Lease&) {
                                   CHECK(
                                       t.db.number(
                                           "select count(*) from txinbox_consumed_message where lease_expires_at >= '" +
                                           row_was_free + "'") == 1);
                                 })
                        .outcome == consumed);
            });
            wait_until_one_waits_for_lock(t.db);
            std::this_thread::sleep_for(200ms);
            row_was_free = t.db.text(a_minute_from_now);
            sql->commit();
            waiting.join();
          });
        }) == "lease_lost");
}

}  // namespace
}  // namespace txinbox::test
