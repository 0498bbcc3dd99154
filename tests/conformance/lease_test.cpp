// The lease consumer: who gets the key, what the others are told, and who may end it.

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

constexpr Outcome in_progress = Outcome::in_progress;
const Message order{.business_key = "order123", .message_id = "m1"};

void nothing(Lease&) {}
void must_not_run(Lease&) { FAIL("a handler ran that must not"); }

std::string row_state(const TestDatabase& db) { return db.text("select state from txinbox_consumed_message"); }

/// As if the lease's time had passed.
void let_run_out(const TestDatabase& db) {
  db.run("update txinbox_consumed_message set lease_expires_at = " +
         here<std::string>("'2020-01-01 00:00:00.000'", "'2020-01-01'", "'2020-01-01'"));
}

template <class F>
ErrorCode error_of(const F& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.code();
  }
  FAIL("nothing was thrown");
  return ErrorCode::stopped;
}

struct Leases {
  EffectDatabase db;
  Pool pool = db.pool(4);
};

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
  // The one that was too slow is told so, and has not ended its successor's row.
  CHECK(error_of([&] { (void)consumer.consume(order, slow); }) == ErrorCode::lease_lost);
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
      CHECK(error_of([&] { lease.renew(); }) == ErrorCode::lease_lost);
      CHECK(expires() == before);
      CHECK(row_state(t.db) == "consuming");
    };
    CHECK(LeaseConsumer(t.pool, "svc").consume(order, successor).outcome == consumed);
  };
  SUBCASE("it returns") {
    CHECK(error_of([&] { (void)consumer.consume(order, slow); }) == ErrorCode::lease_lost);
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
  CHECK(error_of([&] {
          (void)consumer.consume(order, [&](Lease&) { CHECK(forget(*t.db.session(), "svc", "order123")); });
        }) == ErrorCode::lease_lost);
  CHECK(t.db.claims() == 0);
  CHECK(consumer.consume(order, nothing).outcome == consumed);
}

TEST_CASE("renewing extends the lease to its full length, for its holder and in the table") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc", {.lease = 5s});
  CHECK(consumer
            .consume(order,
                     [&](Lease& lease) {
                       const auto before = lease.expires_at();
                       const auto in_table = t.db.text("select lease_expires_at from txinbox_consumed_message");
                       std::this_thread::sleep_for(5ms);
                       lease.renew();
                       CHECK(lease.expires_at() > before);
                       CHECK(lease.remaining() <= 5s);
                       CHECK(t.db.text("select lease_expires_at from txinbox_consumed_message") > in_table);
                     })
            .outcome == consumed);
}

TEST_CASE("a heartbeat keeps the lease of a handler that takes longer, and stops with it") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc", {.lease = 600ms, .heartbeat = 100ms});
  CHECK(consumer
            .consume(order,
                     [&](Lease& lease) {
                       const auto fence = lease.fence();
                       std::this_thread::sleep_for(1500ms);
                       CHECK(lease.fence() == fence);
                       CHECK(LeaseConsumer(t.pool, "svc").consume(order, must_not_run).outcome == in_progress);
                       CHECK(!lease.stop_token().stop_requested());
                     })
            .outcome == consumed);
}

TEST_CASE("a heartbeat that finds the lease lost tells the handler") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc", {.lease = 10s, .heartbeat = 20ms});
  const auto handler = [&](Lease& lease) {
    CHECK(forget(*t.db.session(), "svc", "order123"));
    while (!lease.stop_token().stop_requested()) std::this_thread::sleep_for(1ms);
  };
  CHECK(error_of([&] { (void)consumer.consume(order, handler); }) == ErrorCode::lease_lost);
}

TEST_CASE("a delivery can wait for the other worker's result") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc");
  LeaseConsumer patient(t.pool, "svc", {.wait = 20s});
  std::atomic<bool> running = false;
  std::thread first([&] {
    CHECK(consumer
              .consume(order,
                       [&](Lease& lease) {
                         running = true;
                         std::this_thread::sleep_for(200ms);
                         lease.delivery().store("done");
                       })
              .outcome == consumed);
  });
  while (!running) std::this_thread::sleep_for(1ms);
  const Result result = patient.consume(order, must_not_run);
  first.join();
  CHECK(result.outcome == duplicate);
  CHECK(result.stored == "done");
}

TEST_CASE("who waits runs the handler itself when the other gives up, and gives up waiting when told to stop") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc");
  std::atomic<bool> running = false;
  std::atomic<bool> end = false;
  std::thread first([&] {
    try {
      (void)consumer.consume(order, [&](Lease&) {
        running = true;
        while (!end) std::this_thread::sleep_for(1ms);
        throw std::runtime_error("gave up");
      });
    } catch (const std::runtime_error&) {
    }
  });
  while (!running) std::this_thread::sleep_for(1ms);
  SUBCASE("it gives up") {
    std::thread ending([&] {
      std::this_thread::sleep_for(50ms);
      end = true;
    });
    CHECK(LeaseConsumer(t.pool, "svc", {.wait = 20s}).consume(order, nothing).outcome == consumed);
    ending.join();
  }
  SUBCASE("a stop") {
    std::stop_source stop;
    std::thread stopping([&] {
      std::this_thread::sleep_for(50ms);
      stop.request_stop();
    });
    LeaseConsumer waiting(t.pool, "svc", {.wait = 1h, .stop = stop.get_token()});
    CHECK(waiting.consume(order, must_not_run).outcome == in_progress);
    stopping.join();
  }
  end = true;
  first.join();
}

TEST_CASE("many workers on many deliveries of one key: one completion, and one handler at a time") {
  Leases t;
  std::atomic<int> inside = 0;
  std::atomic<int> runs = 0;
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      LeaseConsumer consumer(t.pool, "svc");
      for (int n = 0; n < 10; ++n) {
        const Message message{.business_key = "k" + std::to_string(n)};
        for (;;) {
          const Result result = consumer.consume(message, [&](Lease&) {
            ++inside;
            ++runs;
            std::this_thread::sleep_for(1ms);
            --inside;
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

TEST_CASE("many workers that find one lease run out: one takes over") {
  Leases t;
  for (int round = 0; round < 10; ++round) {
    const Message message{.business_key = "k" + std::to_string(round)};
    // A worker that died: its row stays.
    const std::thread::id main = std::this_thread::get_id();
    CHECK(error_of([&] {
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
          }) == ErrorCode::lease_lost);
  }
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
  CHECK_THROWS_AS((void)consumer.consume(order, failing), std::invalid_argument);
  CHECK(consumer.consume(order, must_not_run).outcome == parked);
  CHECK(TxConsumer(t.pool, "svc").consume(order, add_effect).outcome == parked);
  CHECK(retry_failed(*t.db.session(), {}) == 1);
  CHECK(consumer.consume(order, nothing).outcome == consumed);
  CHECK_THROWS_AS(
      (void)consumer.consume({.business_key = "bad"}, [](Lease&) { throw Error(ErrorCode::rejected, "not for us"); }),
      Error);
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

TEST_CASE("a lease consumer sees what every state of the row means, and an unknown one is delivered again") {
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
  CHECK(error_of([&] { (void)state("postponed"); }) == ErrorCode::unknown_state);
}

TEST_CASE("a lease handler holds no connection and may consume by itself") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  LeaseConsumer consumer(pool, "outer");
  TxConsumer inner(pool, "inner");
  CHECK(consumer.consume(order, [&](Lease&) { CHECK(inner.consume(order, add_effect).outcome == consumed); }).outcome ==
        consumed);
  CHECK(error_of([&] {
          (void)inner.consume({.business_key = "2"}, [&](soci::session&, Delivery&) {
            (void)consumer.consume({.business_key = "2"}, nothing);
          });
        }) == ErrorCode::nested_consume);
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
  CHECK(error_of([&] { (void)consumer.consume({.business_key = "2"}, must_not_run); }) == ErrorCode::stopped);
}

TEST_CASE("options and keys that make no sense are refused") {
  Leases t;
  for (const LeaseOptions& wrong : {LeaseOptions{.lease = 0ms}, LeaseOptions{.lease = std::chrono::days(25)},
                                    LeaseOptions{.wait = -1ms}, LeaseOptions{.lease = 1s, .heartbeat = 501ms},
                                    LeaseOptions{.heartbeat = -1ms}, LeaseOptions{.max_attempts = -1}}) {
    CHECK(error_of([&] { LeaseConsumer(t.pool, "svc", wrong); }) == ErrorCode::invalid_argument);
  }
  CHECK(error_of([&] { LeaseConsumer(t.pool, ""); }) == ErrorCode::invalid_key);
  LeaseConsumer consumer(t.pool, "svc");
  CHECK(error_of([&] { (void)consumer.consume({.business_key = ""}, nothing); }) == ErrorCode::invalid_key);
}

TEST_CASE("a takeover that had to wait for the row gets its full lease") {
  Leases t;
  if (on_sqlite3()) return;  // readers see the old row, and the writer's lock is the whole file's
  LeaseConsumer consumer(t.pool, "svc", {.lease = 3s});
  CHECK(error_of([&] {
          (void)consumer.consume(order, [&](Lease&) {
            let_run_out(t.db);
            const auto sql = t.db.session();
            sql->begin();
            *sql << "update txinbox_consumed_message set attempts = 7";
            std::thread waiting([&] {
              CHECK(consumer.consume(order, [](Lease& lease) { CHECK(lease.remaining() > 1500ms); }).outcome ==
                    consumed);
            });
            std::this_thread::sleep_for(2s);
            sql->commit();
            waiting.join();
          });
        }) == ErrorCode::lease_lost);
}

}  // namespace
}  // namespace txinbox::test
