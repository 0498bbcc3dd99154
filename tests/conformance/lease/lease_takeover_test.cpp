// Each kind of consumer takes over an expired lease in the database. shared/ has the other tests of expired leases.

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

#include "support/capabilities.hpp"
#include "support/guard_cases.hpp"
#include "support/leases.hpp"
#include "support/outcomes.hpp"
#include "support/schema_tools.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("each kind of consumer takes over an expired lease, and a lease consumer gets a greater fence") {
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
  LeaseConsumer observed(t.pool, "svc", {}, {.listeners = {on_event([&](const Event& e) {
                                               if (e.type == EventType::lease_taken_over) ++taken;
                                             })}});
  std::int64_t fence = 0;
  const auto slow = [&](Lease& lease) {
    fence = lease.fence();
    let_run_out(t.db);
    SUBCASE("a lease consumer") {
      CHECK(observed.consume(order, [&](Lease& next) { CHECK(next.fence() > fence); }).outcome == consumed);
      CHECK(taken == 1);
    }
    SUBCASE("a transaction in a pool") { by_transaction(pooled); }
    SUBCASE("a transaction on the caller's session") { by_transaction(own); }
    SUBCASE("a batch") {
      CHECK(outcomes(pooled.consume_batch(messages_of({"1", "order123", "2"}), add_effect)) ==
            Outcomes{consumed, consumed, consumed});
      CHECK(t.db.effects() == 3);
    }
    CHECK_THROWS_AS(lease.renew(), Error);
    CHECK(lease.stop_token().stop_requested());
  };
  // The slow worker gets an error. It has not changed the row of its successor.
  CHECK(thrown_by([&] { (void)consumer.consume(order, slow); }) == "lease_lost");
  CHECK(t.db.number("select count(*) from txinbox_consumed_message where business_key = 'order123' and state = "
                    "'consumed'") == 1);
  CHECK(consumer.consume(order, must_not_run).outcome == duplicate);
}

// These columns are NULL if SQLite could not read its clock.
TEST_CASE("a transaction takes over a lease without an end or a fence" * doctest::skip(!on_sqlite3())) {
  Leases t;
  const auto sql = t.db.session();
  TxConsumer own(*sql, "svc");
  TxConsumer pooled(t.pool, "svc");
  for (TxConsumer* consumer : {&own, &pooled}) {
    for (const std::string without : {"lease_expires_at", "lease_fence"}) {
      CAPTURE(without);
      const auto loses_its_lease = [&](Lease&) {
        t.db.run("update txinbox_consumed_message set " + without + " = null");
        CHECK(consumer->consume(order, add_effect).outcome == consumed);
      };
      CHECK(thrown_by([&] { (void)LeaseConsumer(t.pool, "svc").consume(order, loses_its_lease); }) == "lease_lost");
      t.db.run("delete from txinbox_consumed_message");
    }
  }
  CHECK(t.db.effects() == 4);
}

TEST_CASE("a takeover that waited for the lock of the row gets a lease of full length" * doctest::skip(one_writer())) {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc", {.length = 60s});
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
