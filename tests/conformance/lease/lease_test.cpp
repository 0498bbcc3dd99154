// The lease consumer: which worker gets the key, what the others are answered, and which worker may complete it.

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
#include <txinbox/txinbox.hpp>

#include "support/leases.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a handler runs under a lease, once, and its result is handed to duplicates") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc");
  int runs = 0;
  const auto handler = [&](Lease& lease) {
    ++runs;
    CHECK(lease.message().business_key == "order123");
    CHECK(lease.fence() > 0);
    CHECK(lease.remaining() > 50s);
    CHECK(lease.remaining() <= 60s);
    CHECK(row_state(t.db) == "consuming");
    CHECK(t.db.text("select lease_owner from txinbox_consumed_message").find(':') != std::string::npos);
    lease.delivery().store("receipt 7");
  };
  const Result first = consumer.consume(order, handler);
  CHECK(first.outcome == consumed);
  CHECK(first.stored == "receipt 7");
  CHECK(row_state(t.db) == "consumed");
  for (int i = 0; i < 5; ++i) {
    const Result again = consumer.consume(order, handler);
    CHECK(again.outcome == duplicate);
    CHECK(again.stored == "receipt 7");
    REQUIRE(again.age);
    CHECK(*again.age < 5min);
  }
  CHECK(runs == 1);
  CHECK(TxConsumer(t.pool, "svc").consume(order, add_effect).outcome == duplicate);
}

TEST_CASE("while a lease is held, every other delivery is in progress, and says for how long") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc");
  const auto sql = t.db.session();
  TxConsumer own(*sql, "svc");
  const auto handler = [&](Lease&) {
    const Result lease = LeaseConsumer(t.pool, "svc").consume(order, must_not_run);
    CHECK(lease.outcome == in_progress);
    CHECK(lease.retry_after > 50s);
    CHECK(lease.retry_after <= 60s);
    CHECK(action_for(lease) == Action::redeliver);
    const Result transaction = TxConsumer(t.pool, "svc").consume(order, add_effect);
    CHECK(transaction.outcome == in_progress);
    CHECK(transaction.retry_after > 50s);
    CHECK(own.consume(order, add_effect).outcome == in_progress);
    CHECK(LeaseConsumer(t.pool, "other").consume(order, nothing).outcome == consumed);
  };
  CHECK(consumer.consume(order, handler).outcome == consumed);
  CHECK(t.db.effects() == 0);
}

TEST_CASE("a handler that throws gives its lease back, and the redelivery runs at once") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc");
  std::int64_t fence = 0;
  CHECK_THROWS_AS((void)consumer.consume(order,
                                         [&](Lease& lease) {
                                           fence = lease.fence();
                                           throw std::invalid_argument("no");
                                         }),
                  std::invalid_argument);
  CHECK(consumer.consume(order, [&](Lease& lease) { CHECK(lease.fence() > fence); }).outcome == consumed);
}

TEST_CASE("many workers on many deliveries of one key: one completion, and one handler at a time") {
  Leases t;
  std::array<std::atomic<int>, 10> inside{};
  std::atomic<int> runs = 0;
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      LeaseConsumer consumer(t.pool, "svc");
      for (int n = 0; n < 10; ++n) {
        const Message message{.business_key = "k" + std::to_string(n)};
        for (;;) {
          const Result result = consumer.consume(message, [&](Lease&) {
            CHECK(++inside.at(static_cast<std::size_t>(n)) == 1);
            ++runs;
            std::this_thread::sleep_for(1ms);
            --inside.at(static_cast<std::size_t>(n));
          });
          if (action_for(result) == Action::acknowledge) break;
          CHECK(result.outcome == in_progress);
          std::this_thread::sleep_for(1ms);
        }
      }
    });
  }
  for (auto& each : workers) each.join();
  CHECK(runs == 10);
  CHECK(t.db.number("select count(*) from txinbox_consumed_message where state = 'consumed'") == 10);
}

TEST_CASE("other content under a key that is leased or consumed is a conflict") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc");
  const Message original{.business_key = "order123", .content = "100"};
  const Message other{.business_key = "order123", .content = "999"};
  CHECK(consumer
            .consume(original,
                     [&](Lease&) {
                       CHECK(consumer.consume(other, must_not_run).outcome == conflict);
                       let_run_out(t.db);
                       CHECK(consumer.consume(other, must_not_run).outcome == conflict);
                     })
            .outcome == consumed);
  CHECK(consumer.consume(other, must_not_run).outcome == conflict);
  CHECK(t.db.number("select deliveries from txinbox_conflicting_message") == 3);
}

TEST_CASE("a lease's failures are counted, and park its message") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc", {.max_attempts = 2});
  const auto failing = [](Lease&) { throw std::invalid_argument("no"); };
  CHECK_THROWS_AS((void)consumer.consume(order, failing), std::invalid_argument);
  CHECK(list_failed(*t.db.session()).front().attempts == 1);
  const Result last = consumer.consume(order, failing);
  CHECK(last.outcome == parked);
  CHECK(error_class(last.error) == "std::invalid_argument");
  CHECK(consumer.consume(order, must_not_run).outcome == parked);
  CHECK(TxConsumer(t.pool, "svc").consume(order, add_effect).outcome == parked);
  CHECK(retry_failed(*t.db.session(), {}) == 1);
  CHECK(consumer.consume(order, nothing).outcome == consumed);
  const Result rejected =
      consumer.consume({.business_key = "bad"}, [](Lease&) { throw Error(ErrorCode::rejected, "not for us"); });
  CHECK(rejected.outcome == parked);
  CHECK(code_of(rejected.error) == ErrorCode::rejected);
  CHECK(consumer.consume({.business_key = "bad"}, must_not_run).outcome == parked);
}

TEST_CASE("a transient error of a handler and a lost lease are not counted") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc", {.max_attempts = 1});
  CHECK_THROWS_AS((void)consumer.consume(order, [](Lease&) { throw Error(ErrorCode::acquire_timeout, "busy"); }),
                  Error);
  CHECK_THROWS_AS((void)consumer.consume(order, [](Lease&) { throw Error(ErrorCode::lease_lost, "slow"); }), Error);
  CHECK(list_failed(*t.db.session()).empty());
  CHECK(consumer.consume(order, nothing).outcome == consumed);
}

TEST_CASE("a lease consumer reports every state of the row, and redelivers an unknown one") {
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
  CHECK(state("consuming") == in_progress);  // without a time to run out at: nobody made such a row
  CHECK(thrown_by([&] { (void)state("postponed"); }) == "unknown_state");
}

TEST_CASE("a lease handler holds no connection and may consume by itself") {
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

TEST_CASE("a stop lets the handler in hand finish and begins nothing new") {
  Leases t;
  std::stop_source stop;
  LeaseConsumer consumer(t.pool, "svc", {.stop = stop.get_token()});
  CHECK(consumer
            .consume(order,
                     [&](Lease& lease) {
                       CHECK(!lease.stop_token().stop_requested());
                       stop.request_stop();
                       CHECK(lease.stop_token().stop_requested());
                     })
            .outcome == consumed);
  CHECK(thrown_by([&] { (void)consumer.consume({.business_key = "2"}, must_not_run); }) == "stopped");
}

TEST_CASE("what a handler fails with after the stop is not counted") {
  Leases t;
  std::stop_source stop;
  LeaseConsumer consumer(t.pool, "svc", {.max_attempts = 1, .stop = stop.get_token()});
  const auto failing = [&](Lease&) {
    stop.request_stop();
    throw std::invalid_argument("no");
  };
  CHECK_THROWS_AS((void)consumer.consume(order, failing), std::invalid_argument);
  CHECK(list_failed(*t.db.session()).empty());
  CHECK(LeaseConsumer(t.pool, "svc").consume(order, nothing).outcome == consumed);
}

TEST_CASE("options and keys that make no sense are refused") {
  Leases t;
  for (const LeaseOptions& wrong : {LeaseOptions{.lease = 0ms}, LeaseOptions{.lease = std::chrono::days(25)},
                                    LeaseOptions{.wait = -1ms}, LeaseOptions{.lease = 1s, .heartbeat = 501ms},
                                    LeaseOptions{.heartbeat = -1ms}, LeaseOptions{.max_attempts = -1}}) {
    CHECK(thrown_by([&] { LeaseConsumer(t.pool, "svc", wrong); }) == "invalid_argument");
  }
  CHECK(thrown_by([&] { LeaseConsumer(t.pool, ""); }) == "invalid_key");
  LeaseConsumer consumer(t.pool, "svc");
  CHECK(thrown_by([&] { (void)consumer.consume({.business_key = ""}, nothing); }) == "invalid_key");
}

}  // namespace
}  // namespace txinbox::test
