// Messages that fail at COMMIT, and batches that overlap: each message takes effect once.

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

/// A table with a deferred foreign key. The database detects the error at COMMIT, after all handlers have succeeded.
struct DeferredConstraint {
  EffectDatabase db;
  Pool pool = db.pool(1);
  std::unique_ptr<soci::session> sql = db.session();

  DeferredConstraint() {
    db.run("create table parent (id integer primary key)");
    db.run("create table child (id integer references parent(id) deferrable initially deferred)");
    if (on_sqlite3()) *sql << "pragma foreign_keys = on";
  }

  TxConsumer consumer(bool pooled) { return pooled ? TxConsumer(pool, "svc") : TxConsumer(*sql, "svc"); }

  static void handler(soci::session& sql, Delivery& d) {
    add_effect(sql, d);
    if (d.message().business_key == "orphan") sql << "insert into child values (7)";
  }
};

TEST_CASE("with skip, a constraint that is checked at COMMIT fails only its own message" *
          doctest::skip(!defers_constraints())) {
  for (const bool pooled : {true, false}) {
    CAPTURE(pooled);
    DeferredConstraint t;
    TxConsumer consumer = t.consumer(pooled);
    const auto messages = messages_of({"d", "a", "e", "orphan", "b", "c", "f"});
    const auto results = consumer.consume_batch(messages, t.handler, OnFailure::skip);
    CHECK(outcomes(results) == Outcomes{consumed, consumed, consumed, failed, consumed, consumed, consumed});
    CHECK_THROWS_AS(std::rethrow_exception(results[3].error), soci::soci_error);
    CHECK(!is_transient(results[3].error));
    CHECK(t.db.effects() == 6);
    CHECK(t.db.claims() == 6);
    CHECK(t.db.number("select count(*) from child") == 0);
    t.db.run("insert into parent values (7)");
    CHECK(outcomes(consumer.consume_batch(messages, t.handler)) ==
          Outcomes{duplicate, duplicate, duplicate, consumed, duplicate, duplicate, duplicate});
  }
}

TEST_CASE("with stop, a constraint that is checked at COMMIT leaves exactly the messages before it consumed" *
          doctest::skip(!defers_constraints())) {
  for (const bool pooled : {true, false}) {
    CAPTURE(pooled);
    DeferredConstraint t;
    TxConsumer consumer = t.consumer(pooled);
    const auto results = consumer.consume_batch(messages_of({"d", "a", "orphan", "e", "b"}), t.handler);
    CHECK(outcomes(results) == Outcomes{consumed, consumed, failed, not_run, not_run});
    CHECK(t.db.effects() == 2);
    CHECK(t.db.claims() == 2);
  }
}

/// Delivers random parts of the keys until all are acknowledged. Some of the handlers fail.
void deliver_until_acknowledged(TxConsumer& consumer, const std::vector<std::string>& keys, unsigned seed) {
  std::mt19937 random(seed);
  const auto once_in = [&random](unsigned n) { return random() % n == 0; };
  std::set<std::string> left(keys.begin(), keys.end());
  for (int delivery = 0; !left.empty() && delivery < 2000; ++delivery) {
    std::vector<std::string> some;
    for (const std::string& key : keys) {
      if (once_in(4)) some.push_back(key);
    }
    std::shuffle(some.begin(), some.end(), random);
    const bool last = delivery > 1000;  // from here on, no handler fails
    const auto results = consumer.consume_batch(
        messages_of(some),
        [&](soci::session& sql, Delivery& d) {
          add_effect(sql, d);
          if (!last && once_in(8)) throw std::runtime_error("a random failure");
        },
        once_in(2) ? OnFailure::stop : OnFailure::skip);
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (action_for(results[i]) == Action::acknowledge) left.erase(some[i]);
    }
  }
  CHECK(left.empty());
}

TEST_CASE("with four threads, overlapping batches and failing handlers, each message takes effect once" *
          doctest::test_suite("timed")) {
  EffectDatabase db;
  Pool pool = db.pool(4);
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 50}});
  std::vector<std::string> keys;
  for (int i = 0; i < 60; ++i) keys.push_back("order-" + std::to_string(i));
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed] { deliver_until_acknowledged(consumer, keys, seed); });
  }
  for (std::thread& each : threads) each.join();
  CHECK(db.claims() == 60);
  CHECK(db.number("select count(distinct id) from effect") == 60);
  CHECK(db.effects() == 60);
}

}  // namespace
}  // namespace txinbox::test
