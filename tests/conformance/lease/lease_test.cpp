// The lease consumer and the tables of the database. shared/ has the tests that run on each lease store.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/txinbox.hpp>

#include "support/leases.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("the row names the worker, and a message that a LeaseConsumer completed is a duplicate for a TxConsumer") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc");
  const auto handler = [&](Lease&) {
    CHECK(t.db.text("select lease_owner from txinbox_consumed_message").find(':') != std::string::npos);
  };
  CHECK(consumer.consume(order, handler).outcome == consumed);
  CHECK(TxConsumer(t.pool, "svc").consume(order, add_effect).outcome == duplicate);
}

TEST_CASE("while a lease is held, a TxConsumer returns in_progress and the remaining time of the lease") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc");
  const auto sql = t.db.session();
  TxConsumer own(*sql, "svc");
  const auto handler = [&](Lease&) {
    const Result transaction = TxConsumer(t.pool, "svc").consume(order, add_effect);
    CHECK(transaction.outcome == in_progress);
    CHECK(transaction.retry_after > 5s);
    CHECK(own.consume(order, add_effect).outcome == in_progress);
  };
  CHECK(consumer.consume(order, handler).outcome == consumed);
  CHECK(t.db.effects() == 0);
}

// If it ended in the database first, another worker could take it over while the handler still works.
TEST_CASE("a lease ends for its handler before it ends in the database") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc");
  const auto sql = t.db.session();
  const auto check = [&](const Lease& lease) {
    const auto now = std::chrono::system_clock::now();
    const auto end = now + (lease.expires_at() - std::chrono::steady_clock::now());
    const LeaseInfo row = list_leases(*sql).at(0);
    const auto later = std::chrono::system_clock::now();
    CHECK(end <= row.expires_at.value());
    CHECK(row.remaining >= row.expires_at.value() - later);  // rounded up
  };
  for (int i = 0; i < 20; ++i) {
    const auto handler = [&](Lease& lease) {
      check(lease);
      lease.renew();
      check(lease);
    };
    CHECK(consumer.consume({.business_key = std::to_string(i)}, handler).outcome == consumed);
  }
}

TEST_CASE("a conflict under a lease is recorded") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc");
  const Message original{.business_key = "order123", .content = "100"};
  const Message other{.business_key = "order123", .content = "999"};
  CHECK(consumer.consume(original, [&](Lease&) { CHECK(consumer.consume(other, must_not_run).outcome == conflict); })
            .outcome == consumed);
  CHECK(consumer.consume(other, must_not_run).outcome == conflict);
  CHECK(t.db.number("select deliveries from txinbox_conflicting_message") == 2);
}

TEST_CASE("failures under a lease are in the table of failed messages, and an operator can retry the message") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc", {}, {.max_attempts = 2});
  const auto failing = [](Lease&) { throw std::invalid_argument("no"); };
  CHECK_THROWS_AS((void)consumer.consume(order, failing), std::invalid_argument);
  CHECK(list_failed(*t.db.session()).front().attempts == 1);
  CHECK(consumer.consume(order, failing).outcome == parked);
  CHECK(TxConsumer(t.pool, "svc").consume(order, add_effect).outcome == parked);
  CHECK(retry_failed(*t.db.session(), {}) == 1);
  CHECK(consumer.consume(order, nothing).outcome == consumed);
}

TEST_CASE("a lost lease and a failure after the stop are not in the table of failed messages") {
  Leases t;
  std::stop_source stop;
  LeaseConsumer consumer(t.pool, "svc", {}, {.stop = stop.get_token(), .max_attempts = 1});
  CHECK_THROWS_AS((void)consumer.consume(order, [](Lease&) { throw Error(ErrorCode::lease_lost, "slow"); }), Error);
  const auto stopped = [&](Lease&) {
    stop.request_stop();
    throw std::invalid_argument("no");
  };
  CHECK_THROWS_AS((void)consumer.consume(order, stopped), std::invalid_argument);
  CHECK(list_failed(*t.db.session()).empty());
}

TEST_CASE("a lease consumer reports every state of the row, and throws unknown_state for an unknown one") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc");
  CHECK(consumer.consume(order, nothing).outcome == consumed);
  const auto state = [&](const std::string& name) {
    t.db.run("update txinbox_consumed_message set state = '" + name + "'");
    return consumer.consume(order, must_not_run).outcome;
  };
  CHECK(state("torn") == parked);
  CHECK(state("parked") == parked);
  CHECK(state("discarded") == Outcome::discarded);
  CHECK(state("consuming") == in_progress);  // txinbox makes no such row: its lease has no end
  CHECK(thrown_by([&] { (void)state("postponed"); }) == "unknown_state");
}

TEST_CASE("a lease handler holds no connection, and may call consume") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  LeaseConsumer consumer(pool, "outer");
  TxConsumer inner(pool, "inner");
  CHECK(consumer.consume(order, [&](Lease&) { CHECK(inner.consume(order, add_effect).outcome == consumed); }).outcome ==
        consumed);
  CHECK(thrown_by([&] {
          (void)inner.consume({.business_key = "2"}, [&](soci::session&, Delivery&) {
            (void)consumer.consume({.business_key = "2"}, nothing);
          });
        }) == "nested_consume");
}

}  // namespace
}  // namespace txinbox::test
