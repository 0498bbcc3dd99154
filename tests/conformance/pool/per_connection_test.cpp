// Objects that a handler keeps with a connection, until the connection is lost.

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/guard_cases.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

/// How many objects of a test were constructed and destroyed.
struct Lives {
  int made = 0;
  int ended = 0;
  int alive() const { return made - ended; }
};
Lives lives;
Lives other_lives;

/// An object that a handler keeps with a connection: a prepared statement that is bound to its members.
class EffectInsert {
 public:
  explicit EffectInsert(soci::session& sql)
      : sql_(&sql), statement_((sql.prepare << "insert into effect values (:id)", soci::use(id_))) {
    ++lives.made;
  }
  ~EffectInsert() {
    // The connection must still be open here.
    open_at_the_end = open_at_the_end && sql_->get_backend() != nullptr;
    ++lives.ended;
  }
  EffectInsert(const EffectInsert&) = delete;
  EffectInsert& operator=(const EffectInsert&) = delete;

  void run(const std::string& id) {
    id_ = id;
    statement_.execute(true);
    ++runs_;
  }
  int runs() const { return runs_; }

  static inline bool open_at_the_end = true;

 private:
  soci::session* sql_;
  std::string id_;
  soci::statement statement_;
  int runs_ = 0;
};

/// A second type of object to keep with the same connection.
struct Counter {
  explicit Counter(soci::session&) { ++other_lives.made; }
  ~Counter() { ++other_lives.ended; }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  int n = 0;
};

struct Refusing {
  explicit Refusing(soci::session&) { throw std::domain_error("not constructed"); }
};

void insert(soci::session& sql, Delivery& d) { d.per_connection<EffectInsert>(sql).run(d.message().business_key); }

struct Kept {
  Kept() { lives = other_lives = {}; }
  EffectDatabase db;
};

TEST_CASE(
    "per_connection constructs an object once for a connection, and keeps it over messages, duplicates and batches") {
  Kept t;
  {
    Pool pool = t.db.pool(1);
    TxConsumer consumer(pool, "svc");
    CHECK(lives.made == 0);
    for (const char* key : {"a", "b", "c"}) CHECK(consumer.consume({.business_key = key}, insert).outcome == consumed);
    (void)consumer.consume({.business_key = "a"}, insert);
    for (const Result& each : consumer.consume_batch(messages_of({"d", "e", "f"}), insert)) {
      CHECK(each.outcome == consumed);
    }
    TxConsumer other(pool, "another consumer");
    int runs = 0;
    (void)other.consume({.business_key = "g"}, [&](soci::session& sql, Delivery& d) {
      insert(sql, d);
      runs = d.per_connection<EffectInsert>(sql).runs();
    });
    CHECK(runs == 7);
    CHECK(lives.made == 1);
    CHECK(lives.ended == 0);
  }
  CHECK(lives.ended == 1);  // destroyed with the pool
  CHECK(EffectInsert::open_at_the_end);
  CHECK(t.db.effects() == 7);
}

TEST_CASE("per_connection keeps one object for each connection") {
  Kept t;
  Pool pool = t.db.pool(2);
  TxConsumer consumer(pool, "svc");
  (void)consumer.consume({.business_key = "a"}, insert);
  {
    const auto busy = pool.acquire();
    (void)consumer.consume({.business_key = "b"}, insert);
  }
  CHECK(lives.made == 2);
  (void)consumer.consume({.business_key = "c"}, insert);
  CHECK(lives.made == 2);
  CHECK(t.db.effects() == 3);
}

TEST_CASE("per_connection keeps one object for each type") {
  Kept t;
  Pool pool = t.db.pool(1);
  TxConsumer consumer(pool, "svc");
  int n = 0;
  for (const char* key : {"a", "b", "c"}) {
    (void)consumer.consume({.business_key = key}, [&](soci::session& sql, Delivery& d) {
      insert(sql, d);
      n = ++d.per_connection<Counter>(sql).n;
      CHECK(&d.per_connection<Counter>(sql) == &d.per_connection<Counter>(sql));
    });
  }
  CHECK(n == 3);
  CHECK(lives.made == 1);
  CHECK(other_lives.made == 1);
}

TEST_CASE("per_connection destroys the object after a failed run, and constructs a new one for the next") {
  Kept t;
  t.db.run("create unique index one_each on effect (id)");
  Pool pool = t.db.pool(1);
  TxConsumer consumer(pool, "svc");
  (void)consumer.consume({.business_key = "a"}, insert);
  // The handler fails, the statement fails, or the guard fails.
  const std::vector<Handler> failures = {
      [](soci::session& sql, Delivery& d) {
        insert(sql, d);
        throw std::runtime_error("no");
      },
      [](soci::session& sql, Delivery& d) { d.per_connection<EffectInsert>(sql).run("a"); },
      [](soci::session& sql, Delivery& d) {
        insert(sql, d);
        sql << "rollback";
      }};
  int made = 1;
  for (const Handler& each : failures) {
    const std::string key = "key-" + std::to_string(made);
    CHECK_THROWS((void)consumer.consume({.business_key = key}, each));
    CHECK(lives.alive() == 0);
    CHECK(consumer.consume({.business_key = key + " later"}, insert).outcome == consumed);
    CHECK(lives.made == ++made);
  }
  CHECK(EffectInsert::open_at_the_end);
}

TEST_CASE("per_connection destroys the object after the failed message of a batch, with and without savepoints") {
  Kept t;
  Pool pool = t.db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto results = consumer.consume_batch(
      messages_of({"a", "bad", "b", "c"}),
      [](soci::session& sql, Delivery& d) {
        insert(sql, d);
        if (d.message().business_key == "bad") throw std::runtime_error("no");
      },
      OnFailure::skip);
  CHECK(outcomes(results) == std::vector<Outcome>{consumed, Outcome::failed, consumed, consumed});
  CHECK(lives.made == 3);  // first run, savepoints up to the failure, savepoints after it
  CHECK(lives.alive() == 1);
  CHECK(t.db.effects() == 3);
}

TEST_CASE("per_connection destroys the object with a lost connection, and the next connection gets a new one" *
          doctest::skip(!has_server())) {
  Kept t;
  Pool pool = t.db.pool(1);
  TxConsumer consumer(pool, "svc");
  (void)consumer.consume({.business_key = "a"}, insert);
  const auto killed_once = [&](soci::session& sql, Delivery& d) {
    if (d.attempt() == 1 && d.index() == 0) kill_connection(sql, t.db);
    insert(sql, d);
  };
  CHECK(consumer.consume({.business_key = "b"}, killed_once).outcome == consumed);
  CHECK(lives.made == 2);
  CHECK(lives.alive() == 1);
  CHECK(outcomes(consumer.consume_batch(messages_of({"c", "d"}), killed_once)) ==
        std::vector<Outcome>{consumed, consumed});
  CHECK(lives.made == 3);
  CHECK(lives.alive() == 1);

  const long long idle = connection_id(pool.acquire());
  kill_connection(idle, t.db);
  CHECK(consumer.consume({.business_key = "e"}, insert).outcome == consumed);
  CHECK(lives.made == 4);
  CHECK(lives.alive() == 1);
  CHECK(t.db.effects() == 5);
}

TEST_CASE("a handler that reconnects or closes the session after per_connection affects no other delivery") {
  for (const bool pooled : {true, false}) {
    // SQLite keeps the transaction of a caller's connection open as long as a statement is prepared on it.
    if (on_sqlite3() && !pooled) continue;
    for (const bool reconnects : {true, false}) {
      CAPTURE(pooled);
      CAPTURE(reconnects);
      Kept t;
      {
        Pool pool = t.db.pool(1);
        const auto sql = t.db.session();
        TxConsumer consumer = pooled ? TxConsumer(pool, "svc") : TxConsumer(*sql, "svc");
        (void)consumer.consume({.business_key = "a"}, insert);
        const auto breaking = [&](soci::session& s, Delivery& d) {
          insert(s, d);
          if (reconnects) {
            s.reconnect();
          } else {
            s.close();
          }
        };
        CHECK_THROWS((void)consumer.consume({.business_key = "b"}, breaking));
        const auto batch = [&] {
          for (const Result& each : consumer.consume_batch(messages_of({"c", "b"}), breaking, OnFailure::skip)) {
            CHECK(each.outcome != consumed);
          }
        };
        if (pooled || reconnects) {
          batch();
        } else {
          CHECK_THROWS(batch());  // the consumer's session is closed
        }
        Pool next_pool = t.db.pool(1);
        TxConsumer next(next_pool, "svc");
        CHECK(next.consume({.business_key = "b"}, insert).outcome == consumed);
        if (pooled) CHECK(consumer.consume({.business_key = "d"}, insert).outcome == consumed);
      }
      CHECK(t.db.effects_of("b") == 1);
    }
  }
}

TEST_CASE("per_connection keeps the object for one call on a caller's session") {
  Kept t;
  const auto sql = t.db.session();
  TxConsumer consumer(*sql, "svc");
  (void)consumer.consume({.business_key = "a"}, insert);
  CHECK(lives.made == 1);
  CHECK(lives.alive() == 0);
  for (const Result& each : consumer.consume_batch(messages_of({"b", "c"}), insert)) CHECK(each.outcome == consumed);
  CHECK(lives.made == (on_postgresql() ? 3 : 2));  // `Delivery::keeps_statements` is false there
  CHECK(lives.alive() == 0);
  sql->close();  // SQLite refuses this while a statement is prepared
  CHECK(t.db.effects() == 3);
}

TEST_CASE("an exception of the constructor in per_connection is the handler's error, and no object is kept") {
  Kept t;
  Pool pool = t.db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto refused = [](soci::session& sql, Delivery& d) {
    add_effect(sql, d);
    d.per_connection<Refusing>(sql);
  };
  CHECK_THROWS_AS((void)consumer.consume({.business_key = "a"}, refused), std::domain_error);
  CHECK_THROWS_AS((void)consumer.consume({.business_key = "a"}, refused), std::domain_error);
  CHECK(t.db.effects() == 0);
  CHECK(consumer.consume({.business_key = "a"}, insert).outcome == consumed);
}

TEST_CASE("per_connection keeps the object in a delivery that a test has constructed") {
  Kept t;
  const auto sql = t.db.session();
  const Message message{.business_key = "a"};
  {
    Delivery delivery(message);
    insert(*sql, delivery);
    insert(*sql, delivery);
    CHECK(delivery.per_connection<EffectInsert>(*sql).runs() == 2);
    CHECK(lives.made == 1);
  }
  CHECK(lives.alive() == 0);
  CHECK(t.db.effects() == 2);
}

}  // namespace
}  // namespace txinbox::test
