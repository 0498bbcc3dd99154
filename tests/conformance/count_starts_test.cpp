// Attempts that are counted from their start: a message that kills its process is parked in the end.

#include <unistd.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/child_process.hpp"
#include "support/effects.hpp"
#include "support/guard_cases.hpp"
#include "support/outcomes.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

const Message order{.business_key = "order123", .message_id = "m1"};
const TxConsumerOptions counting{.max_attempts = 2, .count_starts = true};
const LeaseOptions counting_leases{.lease = 200ms, .max_attempts = 2, .count_starts = true};

constexpr int died = 9;
void die(soci::session&, Delivery&) { ::_exit(died); }
void die_leased(Lease&) { ::_exit(died); }

long long marks(const TestDatabase& db) {
  return db.number("select count(*) from txinbox_failed_message where running_token is not null");
}

long long marks_of_exclusive(const TestDatabase& db) {
  return db.number("select count(*) from txinbox_failed_message where running_alone = 1");
}

/// A mark as another process leaves it that dies in an exclusive attempt.
void leave_mark_of_exclusive(const TestDatabase& db) {
  db.run("update txinbox_failed_message set running_alone = 1, running_token = " +
         here<std::string>("x'00112233445566778899aabbccddeeff'", "x'00112233445566778899aabbccddeeff'",
                           "'00112233-4455-6677-8899-aabbccddeeff'"));
}

FailedMessage only_failed(const TestDatabase& db) {
  const auto all = list_failed(*db.session());
  REQUIRE(all.size() == 1);
  return all.front();
}

TEST_CASE("a message that kills its process is counted from its second death on, and parked after max_attempts") {
  const EffectDatabase db;
  const auto killed = [&] {
    return in_process([&] {
      Pool pool = db.pool(2);
      (void)TxConsumer(pool, "svc", counting).consume(order, die);
    });
  };
  CHECK(killed() == died);
  CHECK(marks(db) == 1);
  CHECK(marks_of_exclusive(db) == 0);
  CHECK(killed() == died);  // runs alone from now on
  CHECK(marks_of_exclusive(db) == 1);
  CHECK(list_failed(*db.session()).empty());
  CHECK(killed() == died);  // counts the second death
  CHECK(marks_of_exclusive(db) == 1);
  CHECK(only_failed(db).attempts == 1);
  CHECK(only_failed(db).deaths == 1);
  CHECK(only_failed(db).last_error == "process died");
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc", counting);
  CHECK(consumer.consume(order, add_effect).outcome == parked);
  CHECK(consumer.consume(order, add_effect).outcome == parked);
  CHECK(only_failed(db).state == FailedState::parked);
  CHECK(only_failed(db).deaths == 2);
  CHECK(db.effects() == 0);
  CHECK(retry_failed(*db.session(), {}) == 1);
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
}

TEST_CASE("without count_starts, a message that kills its process is never counted") {
  const EffectDatabase db;
  for (int i = 0; i < 3; ++i) {
    CHECK(in_process([&] {
            Pool pool = db.pool(1);
            (void)TxConsumer(pool, "svc", {.max_attempts = 1}).consume(order, die);
          }) == died);
  }
  Pool pool = db.pool(1);
  CHECK(TxConsumer(pool, "svc", {.max_attempts = 1}).consume(order, add_effect).outcome == consumed);
  CHECK(list_failed(*db.session()).empty());
}

TEST_CASE("an attempt that ends leaves no mark: consumed, failed, given back") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc", {.retry = {.max_attempts = 1}, .max_attempts = 9, .count_starts = true});
  int seen = 0;
  const auto watch = [&](soci::session& sql, Delivery& delivery) {
    seen += static_cast<int>(marks(db));
    add_effect(sql, delivery);
  };
  CHECK(consumer.consume({.business_key = "1"}, watch).outcome == consumed);
  CHECK(seen == 1);
  CHECK(db.number("select count(*) from txinbox_failed_message") == 0);
  CHECK_THROWS((void)consumer.consume(order, [](soci::session&, Delivery&) { throw std::runtime_error("no"); }));
  CHECK(marks(db) == 0);
  CHECK(only_failed(db).attempts == 1);
  CHECK_THROWS(
      (void)consumer.consume(order, [](soci::session&, Delivery&) { throw Error(ErrorCode::acquire_timeout, ""); }));
  CHECK(marks(db) == 0);
  CHECK(only_failed(db).attempts == 1);
  CHECK(consumer.consume(order, watch).outcome == consumed);
  CHECK(consumer.consume(order, watch).outcome == duplicate);
  CHECK(marks(db) == 0);
  CHECK(db.effects() == 2);
}

TEST_CASE("a batch runs message by message, each in its place, and one that fails fails alone") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc", counting);
  std::vector<std::size_t> places;
  const auto handler = [&](soci::session& sql, Delivery& delivery) {
    places.push_back(delivery.index());
    add_effect(sql, delivery);
    if (delivery.message().business_key == "bad") throw std::runtime_error("bad");
  };
  const auto batch = messages_of({"1", "bad", "2"});
  CHECK(outcomes(consumer.consume_batch(batch, handler, OnFailure::skip)) == Outcomes{consumed, failed, consumed});
  CHECK(places == std::vector<std::size_t>{0, 1, 2});
  CHECK(outcomes(consumer.consume_batch(batch, handler)) == Outcomes{duplicate, parked, not_run});
  CHECK(outcomes(consumer.consume_batch(batch, handler)) == Outcomes{duplicate, parked, duplicate});
  CHECK(db.effects() == 2);
}

TEST_CASE("of messages that were in flight together none is counted, and each then runs alone") {
  const EffectDatabase db;
  CHECK(in_process([&] {
          Pool pool = db.pool(4);
          TxConsumer consumer(pool, "svc", counting);
          LeaseConsumer leases(pool, "leases", {.lease = 200ms, .max_attempts = 2, .count_starts = true});
          // The first waits in its handler for the other: on SQLite, where only one transaction writes, the other
          // is under a lease.
          std::atomic<bool> other_runs = false;
          std::thread other;
          (void)leases.consume({.business_key = "innocent"}, [&](Lease&) {
            (void)leases.consume({.business_key = "nested"}, [](Lease&) {});  // on the same thread: no deadlock
            other =
                std::thread([&] { (void)consumer.consume(order, [&](soci::session&, Delivery&) { ::_exit(died); }); });
            while (!other_runs) std::this_thread::sleep_for(1ms);
          });
        }) == died);
  CHECK(marks(db) == 2);
  CHECK(db.number("select sum(running_alone) from txinbox_failed_message") == 0);
  Pool pool = db.pool(4);
  CHECK(TxConsumer(pool, "svc", counting).consume(order, add_effect).outcome == consumed);
  CHECK(list_failed(*db.session()).empty());
  std::this_thread::sleep_for(250ms);
  CHECK(LeaseConsumer(pool, "leases", counting_leases).consume({.business_key = "innocent"}, [](Lease&) {}).outcome ==
        consumed);
  CHECK(marks(db) == 0);
}

/// A handler that has a transient error at first.
struct Stumbles {
  int runs = 0;
  void operator()(soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    if (++runs == 1) throw Error(ErrorCode::acquire_timeout, "");
  }
};

TEST_CASE("a process that lives keeps no mark through its backoff, and a suspect stays one") {
  const EffectDatabase db;
  for (const bool suspect : {false, true}) {
    CAPTURE(suspect);
    const Message message{.business_key = suspect ? "suspect" : "other"};
    if (suspect) {
      CHECK(in_process([&] {
              Pool pool = db.pool(1);
              (void)TxConsumer(pool, "svc", counting).consume(message, die);
            }) == died);
    }
    Pool pool = db.pool(1);
    long long marks_in_backoff = -1;
    const auto observer = [&](const Event& event) {
      if (event.type == EventType::retry) marks_in_backoff = marks(db);
    };
    TxConsumer consumer(
        pool, "svc",
        {.retry = {.initial_backoff = 1ms}, .observer = observer, .max_attempts = 2, .count_starts = true});
    Stumbles stumbles;
    long long exclusive = 0;
    const auto handler = [&](soci::session& sql, Delivery& delivery) {
      exclusive += marks_of_exclusive(db);
      stumbles(sql, delivery);
    };
    CHECK(consumer.consume(message, handler).outcome == consumed);
    CHECK(stumbles.runs == 2);
    CHECK(exclusive == (suspect ? 2 : 0));
    CHECK(marks_in_backoff == 0);
    CHECK(marks(db) == 0);
  }
  CHECK(db.effects() == 2);
}

TEST_CASE("a message of which a death was counted runs alone until it is consumed or parked") {
  const EffectDatabase db;
  for (int i = 0; i < 2; ++i) {
    CHECK(in_process([&] {
            Pool pool = db.pool(1);
            (void)TxConsumer(pool, "svc", counting).consume(order, die);
          }) == died);
  }
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.retry = {.max_attempts = 1}, .max_attempts = 3, .count_starts = true});
  const auto stumble = [](soci::session&, Delivery&) { throw Error(ErrorCode::acquire_timeout, ""); };
  CHECK_THROWS((void)consumer.consume(order, stumble));
  CHECK(marks(db) == 0);
  CHECK(only_failed(db).deaths == 1);
  long long exclusive = 0;
  const auto watch = [&](soci::session& sql, Delivery& delivery) {
    exclusive = marks_of_exclusive(db);
    add_effect(sql, delivery);
  };
  CHECK(consumer.consume(order, watch).outcome == consumed);
  CHECK(exclusive == 1);
}

TEST_CASE("a lost connection's mark is struck out before the backoff, too" * doctest::skip(on_sqlite3())) {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  long long marks_in_backoff = -1;
  const auto observer = [&](const Event& event) {
    if (event.type == EventType::retry) marks_in_backoff = marks(db);
  };
  TxConsumer consumer(pool, "svc", {.retry = {.initial_backoff = 1ms}, .observer = observer, .count_starts = true});
  int runs = 0;
  const auto handler = [&](soci::session& sql, Delivery& delivery) {
    if (++runs == 1) kill_connection(sql, db);
    add_effect(sql, delivery);
  };
  CHECK(consumer.consume(order, handler).outcome == consumed);
  CHECK(marks_in_backoff == 0);
  CHECK(db.effects() == 1);
}

TEST_CASE("a lease is not released while the mark of its attempt is there") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  long long marks_at_the_end = -1;
  const auto observer = [&](const Event& event) {
    if (event.type == EventType::failed) marks_at_the_end = marks(db);
  };
  LeaseConsumer consumer(pool, "svc", {.max_attempts = 2, .observer = observer, .count_starts = true});
  CHECK_THROWS((void)consumer.consume(order, [](Lease&) { throw Error(ErrorCode::acquire_timeout, ""); }));
  CHECK(marks_at_the_end == 0);
}

TEST_CASE("an attempt waits for no connection of another pool, and no database of another") {
  const EffectDatabase busy_db;
  const EffectDatabase db;
  Pool busy = busy_db.pool(PoolOptions{.connections = 1, .acquire_timeout = 50ms});
  Pool pool = db.pool(PoolOptions{.connections = 1, .acquire_timeout = 50ms});
  const TxConsumerOptions once{.retry = {.max_attempts = 1}, .max_attempts = 1, .count_starts = true};
  TxConsumer first(busy, "first", once);
  TxConsumer second(pool, "second", once);
  const auto handler = [&](soci::session& sql, Delivery& delivery) {
    // While this handler has the only connection of its pool.
    std::thread([&] { CHECK(second.consume(order, add_effect).outcome == consumed); }).join();
    CHECK(second.consume({.business_key = "nested"}, add_effect).outcome == consumed);
    add_effect(sql, delivery);
  };
  CHECK(first.consume(order, handler).outcome == consumed);
  CHECK(db.effects() == 2);
  CHECK(busy_db.effects() == 1);
}

TEST_CASE("with pools that can tell each other nothing, the innocent is not parked, and the guilty is") {
  const EffectDatabase innocent_db;
  const EffectDatabase guilty_db;
  const TxConsumerOptions strict{.max_attempts = 1, .count_starts = true};
  CHECK(in_process([&] {
          Pool first = innocent_db.pool(PoolOptions{.connections = 1, .acquire_timeout = 50ms});
          Pool second = guilty_db.pool(PoolOptions{.connections = 1, .acquire_timeout = 50ms});
          TxConsumer innocent(first, "svc", strict);
          TxConsumer guilty(second, "svc", strict);
          (void)innocent.consume(
              order, [&](soci::session&, Delivery&) { std::thread([&] { (void)guilty.consume(order, die); }).join(); });
        }) == died);
  Pool innocent_pool = innocent_db.pool(1);
  CHECK(TxConsumer(innocent_pool, "svc", strict).consume(order, add_effect).outcome == consumed);
  CHECK(in_process([&] {
          Pool pool = guilty_db.pool(1);
          (void)TxConsumer(pool, "svc", strict).consume(order, die);
        }) == died);
  Pool guilty_pool = guilty_db.pool(1);
  CHECK(TxConsumer(guilty_pool, "svc", strict).consume(order, add_effect).outcome == parked);
  CHECK(innocent_db.effects() == 1);
  CHECK(guilty_db.effects() == 0);
}

TEST_CASE("while a suspect runs, others of the process wait, as long as acquire_timeout") {
  const EffectDatabase db;
  const EffectDatabase other_db;
  CHECK(in_process([&] {
          Pool pool = db.pool(1);
          (void)TxConsumer(pool, "svc", counting).consume(order, die);
        }) == died);
  Pool pool = db.pool(1);
  Pool other = other_db.pool(PoolOptions{.connections = 2, .acquire_timeout = 20ms});
  TxConsumer consumer(other, "svc", {.retry = {.max_attempts = 1}, .count_starts = true});
  LeaseConsumer leases(other, "leases", {.retry = {.max_attempts = 1}, .count_starts = true});
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
    CHECK(consumer.consume({.business_key = "nested"}, add_effect).outcome == consumed);  // of the same thread
    add_effect(sql, delivery);
  };
  CHECK(TxConsumer(pool, "svc", counting).consume(order, handler).outcome == consumed);
  CHECK(other_db.number("select count(*) from txinbox_failed_message") == 0);  // neither counted nor marked
  CHECK(!code_of_another(consume));
  CHECK(leases.consume(order, [](Lease&) {}).outcome == consumed);  // its lease was given back
  CHECK(other_db.effects() == 2);
}

TEST_CASE("the mark of an attempt that runs elsewhere is waited for, not counted") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc", counting);
  // As another process would have left it that ends before we have looked again: without one.
  CHECK_THROWS((void)consumer.consume(order, [](soci::session&, Delivery&) { throw std::runtime_error("no"); }));
  leave_mark_of_exclusive(db);
  std::atomic<bool> holds = false;
  std::thread elsewhere([&] {
    // It holds the key, and ends by failing: its count removes the mark.
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

TEST_CASE("a lease's handler that kills its process is parked after max_attempts") {
  const EffectDatabase db;
  const auto killed = [&] {
    return in_process([&] {
      Pool pool = db.pool(2);
      (void)LeaseConsumer(pool, "svc", counting_leases).consume(order, die_leased);
    });
  };
  for (int i = 0; i < 3; ++i) {  // the first death is not counted
    CHECK(killed() == died);
    std::this_thread::sleep_for(250ms);
  }
  Pool pool = db.pool(2);
  LeaseConsumer consumer(pool, "svc", counting_leases);
  CHECK(consumer.consume(order, [](Lease&) { FAIL("a handler ran that must not"); }).outcome == parked);
  CHECK(only_failed(db).deaths == 2);
  CHECK(only_failed(db).state == FailedState::parked);
  CHECK(retry_failed(*db.session(), {}) == 1);
  CHECK(consumer.consume(order, [](Lease&) {}).outcome == consumed);
  CHECK(marks(db) == 0);
}

TEST_CASE("count_starts is refused on a session of the caller's") {
  const EffectDatabase db;
  const auto sql = db.session();
  CHECK_THROWS_AS(TxConsumer(*sql, "svc", counting), Error);
}

TEST_CASE("many threads with count_starts consume each key once and leave no mark") {
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
  CHECK(marks(db) == 0);
}

}  // namespace
}  // namespace txinbox::test
