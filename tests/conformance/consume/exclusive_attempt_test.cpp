// count_starts with several running attempts: after a crash, each message that may have caused it runs alone.

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/child_process.hpp"
#include "support/crashing_handlers.hpp"
#include "support/effects.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// A handler that has a transient error in its first run.
struct Stumbles {
  int runs = 0;
  void operator()(soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    if (++runs == 1) throw Error(ErrorCode::acquire_timeout, "");
  }
};

TEST_CASE("a crash with several running messages counts for none of them, and then each of them runs alone") {
  const EffectDatabase db;
  CHECK(
      in_process([&] {
        Pool pool = db.pool(4);
        TxConsumer consumer(pool, "svc", counting);
        LeaseConsumer leases(pool, "leases", {}, {.max_attempts = 2, .count_starts = true});
        // The other handler ends the process while the first one runs. The first message is under a lease, because on
        // SQLite only one transaction can write.
        (void)leases.consume({.business_key = "innocent"}, [&](Lease&) {
          (void)leases.consume({.business_key = "nested"}, [](Lease&) {});  // same thread: no wait
          std::thread([&] { (void)consumer.consume(order, [&](soci::session&, Delivery&) { ::_exit(died); }); }).join();
        });
      }) == died);
  CHECK(markers(db) == 2);
  CHECK(db.number("select sum(running_alone) from txinbox_failed_message") == 0);
  Pool pool = db.pool(4);
  CHECK(TxConsumer(pool, "svc", counting).consume(order, add_effect).outcome == consumed);
  CHECK(list_failed(*db.session()).empty());
  db.run("update txinbox_consumed_message set lease_expires_at = '2020-01-01 00:00:00.000' where state = 'consuming'");
  CHECK(LeaseConsumer(pool, "leases", {}, {.max_attempts = 2, .count_starts = true})
            .consume({.business_key = "innocent"}, [](Lease&) {})
            .outcome == consumed);
  CHECK(markers(db) == 0);
}

TEST_CASE("an attempt has no marker during its backoff, and a suspected message still runs alone after it") {
  const EffectDatabase db;
  for (const bool suspect : {false, true}) {
    CAPTURE(suspect);
    const Message message{.business_key = suspect ? "suspect" : "other"};
    if (suspect) {
      CHECK(in_process([&] {
              Pool pool = db.pool(1);
              (void)TxConsumer(pool, "svc", counting).consume(message, crash);
            }) == died);
    }
    Pool pool = db.pool(1);
    long long markers_in_backoff = -1;
    const auto observer = [&](const Event& event) {
      if (event.type == EventType::retry) markers_in_backoff = markers(db);
    };
    TxConsumer consumer(pool, "svc",
                        {.retry = {.initial_backoff = 1ms},
                         .listeners = {on_event(observer)},
                         .max_attempts = 2,
                         .count_starts = true});
    Stumbles stumbles;
    long long exclusive = 0;
    const auto handler = [&](soci::session& sql, Delivery& delivery) {
      exclusive += exclusive_markers(db);
      stumbles(sql, delivery);
    };
    CHECK(consumer.consume(message, handler).outcome == consumed);
    CHECK(stumbles.runs == 2);
    CHECK(exclusive == (suspect ? 2 : 0));
    CHECK(markers_in_backoff == 0);
    CHECK(markers(db) == 0);
  }
  CHECK(db.effects() == 2);
}

TEST_CASE("a message with a counted crash runs alone until it is consumed or parked") {
  const EffectDatabase db;
  for (int i = 0; i < 2; ++i) {
    CHECK(in_process([&] {
            Pool pool = db.pool(1);
            (void)TxConsumer(pool, "svc", counting).consume(order, crash);
          }) == died);
  }
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 1}, .max_attempts = 3, .count_starts = true});
  const auto stumble = [](soci::session&, Delivery&) { throw Error(ErrorCode::acquire_timeout, ""); };
  CHECK_THROWS((void)consumer.consume(order, stumble));
  CHECK(markers(db) == 0);
  CHECK(only_failed(db).crashes == 1);
  long long exclusive = 0;
  const auto watch = [&](soci::session& sql, Delivery& delivery) {
    exclusive = exclusive_markers(db);
    add_effect(sql, delivery);
  };
  CHECK(consumer.consume(order, watch).outcome == consumed);
  CHECK(exclusive == 1);
}

TEST_CASE("an attempt does not wait for a connection of another pool or another database") {
  const EffectDatabase busy_db;
  const EffectDatabase db;
  Pool busy = busy_db.pool(PoolOptions{.connections = 1, .acquire_timeout = 50ms});
  Pool pool = db.pool(PoolOptions{.connections = 1, .acquire_timeout = 50ms});
  const ConsumerOptions once{.retry = {.max_runs = 1}, .max_attempts = 1, .count_starts = true};
  TxConsumer first(busy, "first", once);
  TxConsumer second(pool, "second", once);
  const auto handler = [&](soci::session& sql, Delivery& delivery) {
    // This handler has the only connection of its pool.
    std::thread([&] { CHECK(second.consume(order, add_effect).outcome == consumed); }).join();
    CHECK(second.consume({.business_key = "nested"}, add_effect).outcome == consumed);
    add_effect(sql, delivery);
  };
  CHECK(first.consume(order, handler).outcome == consumed);
  CHECK(db.effects() == 2);
  CHECK(busy_db.effects() == 1);
}

TEST_CASE("with a pool for each database, the message that crashes the process is parked, and the other is not") {
  const EffectDatabase innocent_db;
  const EffectDatabase guilty_db;
  const ConsumerOptions strict{.max_attempts = 1, .count_starts = true};
  CHECK(in_process([&] {
          Pool first = innocent_db.pool(PoolOptions{.connections = 1, .acquire_timeout = 50ms});
          Pool second = guilty_db.pool(PoolOptions{.connections = 1, .acquire_timeout = 50ms});
          TxConsumer innocent(first, "svc", strict);
          TxConsumer guilty(second, "svc", strict);
          (void)innocent.consume(order, [&](soci::session&, Delivery&) {
            std::thread([&] { (void)guilty.consume(order, crash); }).join();
          });
        }) == died);
  Pool innocent_pool = innocent_db.pool(1);
  CHECK(TxConsumer(innocent_pool, "svc", strict).consume(order, add_effect).outcome == consumed);
  CHECK(in_process([&] {
          Pool pool = guilty_db.pool(1);
          (void)TxConsumer(pool, "svc", strict).consume(order, crash);
        }) == died);
  Pool guilty_pool = guilty_db.pool(1);
  CHECK(TxConsumer(guilty_pool, "svc", strict).consume(order, add_effect).outcome == parked);
  CHECK(innocent_db.effects() == 1);
  CHECK(guilty_db.effects() == 0);
}

TEST_CASE("while a suspected message runs, other attempts of the process wait for at most acquire_timeout") {
  const EffectDatabase db;
  const EffectDatabase other_db;
  CHECK(in_process([&] {
          Pool pool = db.pool(1);
          (void)TxConsumer(pool, "svc", counting).consume(order, crash);
        }) == died);
  Pool pool = db.pool(1);
  Pool other = other_db.pool(PoolOptions{.connections = 2, .acquire_timeout = 20ms});
  TxConsumer consumer(other, "svc", {.retry = {.max_runs = 1}, .count_starts = true});
  LeaseConsumer leases(other, "leases", {}, {.retry = {.max_runs = 1}, .count_starts = true});
  const auto code_of_another = [&](const auto& consume) {
    std::optional<ErrorCode> code;
    std::thread([&] {
      try {
        consume();
      } catch (...) {
        code = code_of(std::current_exception());
      }
    }).join();
    return code;
  };
  const auto consume = [&] { (void)consumer.consume(order, add_effect); };
  const auto consume_leased = [&] { (void)leases.consume(order, [](Lease&) {}); };
  const auto handler = [&](soci::session& sql, Delivery& delivery) {
    CHECK(code_of_another(consume) == ErrorCode::acquire_timeout);
    CHECK(code_of_another(consume_leased) == ErrorCode::acquire_timeout);
    CHECK(consumer.consume({.business_key = "nested"}, add_effect).outcome == consumed);  // on the same thread
    add_effect(sql, delivery);
  };
  CHECK(TxConsumer(pool, "svc", counting).consume(order, handler).outcome == consumed);
  CHECK(other_db.number("select count(*) from txinbox_failed_message") == 0);  // no failure and no marker
  CHECK(!code_of_another(consume));
  CHECK(leases.consume(order, [](Lease&) {}).outcome == consumed);  // its lease was released
  CHECK(other_db.effects() == 2);
}

TEST_CASE("a delivery waits for an attempt in another process, and does not count it as a crash" *
          doctest::test_suite("timed")) {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc", counting);
  // Leaves a marker like that of another process.
  CHECK_THROWS((void)consumer.consume(order, [](soci::session&, Delivery&) { throw std::runtime_error("no"); }));
  leave_exclusive_marker(db);
  std::atomic<bool> holds = false;
  std::thread elsewhere([&] {
    // This attempt holds the key and then fails. The count of its failure removes the marker.
    Pool other = db.pool(1);
    try {
      (void)TxConsumer(other, "svc", {.max_attempts = 9}).consume(order, [&](soci::session&, Delivery&) {
        holds = true;
        std::this_thread::sleep_for(300ms);
        throw std::runtime_error("failed elsewhere");
      });
    } catch (const std::runtime_error&) {
    }
  });
  while (!holds) std::this_thread::sleep_for(1ms);
  const Result result = consumer.consume(order, add_effect);
  elsewhere.join();
  CHECK(result.outcome == consumed);
  CHECK(db.number("select attempts from txinbox_failed_message") >= 1);
}

TEST_CASE("many threads with count_starts consume each key once and leave no marker") {
  const EffectDatabase db;
  Pool pool = db.pool(4);
  TxConsumer consumer(pool, "svc", counting);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        try {
          (void)consumer.consume({.business_key = std::to_string(i)}, add_effect);
        } catch (...) {
          FAIL_CHECK("a delivery failed");
        }
      }
    });
  }
  for (auto& each : threads) each.join();
  CHECK(db.effects() == 10);
  CHECK(markers(db) == 0);
}

}  // namespace
}  // namespace txinbox::test
