// Handlers that commit by themselves and also have another error. Their claims are torn or rolled back, and other
// claims are not. No session stays in a transaction.

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include <doctest/doctest.h>
#include <soci/mysql/soci-mysql.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/guard_cases.hpp"
#include "support/late_commit.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using std::chrono::milliseconds;

const Message order{.business_key = "order123"};
const Message kanji{.business_key = "鍵"};

/// Locks every claim, so that a search for a claim waits until the session rolls back.
void lock_claims(soci::session& sql) {
  sql.begin();
  int rows = 0;
  sql << "select count(*) from (select 1 from txinbox_consumed_message for update) x", soci::into(rows);
}

TEST_CASE("a search for a torn claim that times out leaves no transaction open on a caller's session" *
          doctest::skip(!on_mysql())) {
  EffectDatabase db;
  const auto sql = db.session();
  *sql << "set innodb_lock_wait_timeout = 1";
  const auto other = db.session();
  TxConsumer consumer(*sql, "svc", {.retry = {.max_runs = 1}});
  CHECK(thrown_by([&] {
          (void)consumer.consume(order, [&](soci::session& s, Delivery& d) {
            add_effect(s, d);
            s.commit();
            lock_claims(*other);
          });
        }) == "transaction_lost");
  other->rollback();
  *sql << "insert into effect values ('the caller''s own')";
  CHECK(db.effects_of("the caller''s own") == 1);
  CHECK(consumer.consume({.business_key = "next"}, add_effect).outcome == Outcome::consumed);
}

TEST_CASE(
    "a search for a torn claim that times out leaves no transaction open on a pool's connection, and the next run "
    "repeats the search" *
    doctest::skip(pool_refuses_foreign_commit())) {
  EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 1, .lock_timeout = milliseconds(1000)});
  const auto other = db.session();
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 2}, .listeners = {on_event([&](const Event& e) {
                                                                if (e.type != EventType::retry) return;
                                                                auto connection = pool.acquire();
                                                                connection.session()
                                                                    << "insert into effect values ('another user')";
                                                                other->rollback();
                                                              })}});
  const Result result = consumer.consume(order, [&](soci::session& s, Delivery& d) {
    add_effect(s, d);
    s.commit();
    lock_claims(*other);
    throw soci::mysql_soci_error("in place of a deadlock", 1213);
  });
  CHECK(result.outcome == Outcome::parked);
  CHECK(db.effects_of("another user") == 1);
  CHECK(db.text("select state from txinbox_consumed_message") == "torn");
}

TEST_CASE("a handler's own COMMIT that ends after its connection was lost is not reported as a duplicate" *
          doctest::skip(!has_server())) {
  EffectDatabase db;
  prepare_late_commit(db);
  Pool pool = db.pool(2);
  int torn_events = 0;
  TxConsumer consumer(pool, "svc",
                      {.listeners = {on_event([&](const Event& e) { torn_events += e.type == EventType::torn; })}});
  bool commits = true;
  const Result result = consumer.consume(order, [&](soci::session& s, Delivery& d) {
    add_effect(s, d);
    if (!std::exchange(commits, false)) return;
    commit_late(s);
    add_effect(s, d);
  });
  CHECK(db.effects() == 1);
  if (refuses_foreign_commit()) {
    CHECK(result.outcome == Outcome::consumed);  // in the second run, because the COMMIT was refused
    return;
  }
  CHECK(result.outcome == Outcome::parked);
  CHECK(torn_events == 1);
  CHECK(db.text("select state from txinbox_consumed_message") == "torn");
}

TEST_CASE("a redelivery while a handler continues after its own COMMIT is not reported as a duplicate" *
          doctest::skip(one_writer())) {  // SQLite's pools refuse the COMMIT, and have one writer at a time
  EffectDatabase db;
  Pool pool = db.pool(2);
  const ConsumerOptions once{.retry = {.max_runs = 1}, .recent_keys = {.capacity = 10}};
  TxConsumer consumer(pool, "svc", once);
  Result meanwhile{};
  CHECK(thrown_by([&] {
          (void)consumer.consume(order, [&](soci::session& s, Delivery& d) {
            quietly([&] { s.commit(); });
            TxConsumer elsewhere(pool, "svc", once);
            std::jthread([&] { meanwhile = elsewhere.consume(order, add_effect); }).join();
            quietly([&] { add_effect(s, d); });
          });
        }) == "transaction_lost");
  const Result later = consumer.consume(order, add_effect);
  if (refuses_foreign_commit()) {
    CHECK(meanwhile.outcome == Outcome::consumed);
    CHECK(later.outcome == Outcome::already_consumed);
    CHECK(db.effects() == 1);
  } else {
    CHECK(meanwhile.outcome == Outcome::parked);
    CHECK(later.outcome == Outcome::parked);
    CHECK(db.effects() == 0);
  }
}

TEST_CASE("PostgreSQL's refusal names the reason for each statement that it refuses" *
          doctest::skip(!on_postgresql())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  for (const char* statement : {"commit", "set constraints all immediate", "commit and chain"}) {
    CAPTURE(statement);
    std::string text;
    try {
      (void)consumer.consume(order, [&](soci::session& s, Delivery& d) {
        add_effect(s, d);
        s << statement;
      });
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::transaction_lost);
      text = e.what();
    }
    CHECK(text.find("SET CONSTRAINTS ALL IMMEDIATE") != std::string::npos);
    CHECK(db.claims() == 0);
    CHECK(db.effects() == 0);
  }
}

TEST_CASE("a write after the end of the transaction in a PostgreSQL pool is not reported as a read-only replica" *
          doctest::skip(!on_postgresql())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  int runs = 0;
  TxConsumer consumer(pool, "svc");
  CHECK(thrown_by([&] {
          (void)consumer.consume(order, [&](soci::session& s, Delivery& d) {
            ++runs;
            s.rollback();
            add_effect(s, d);
          });
        }) == "transaction_lost");
  CHECK(runs == 1);  // the error of a read-only replica would cause another run
  CHECK(db.effects() == 0);
}

TEST_CASE(
    "a PostgreSQL pool's session is writable for its user, and later refuses a handler's write outside its "
    "transaction" *
    doctest::skip(!on_postgresql())) {
  EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 1});
  TxConsumer consumer(pool, "svc");
  for (int i = 0; i < 2; ++i) {
    {
      const Connection connection = pool.acquire();
      connection.session() << "insert into effect values ('the user''s own')";
    }
    CHECK(thrown_by([&] {
            (void)consumer.consume(order, [](soci::session& s, Delivery& d) {
              s.rollback();
              add_effect(s, d);
            });
          }) == "transaction_lost");
  }
  CHECK(db.effects() == 2);
}

TEST_CASE("a handler that changes the client encoding keeps its result and its claim" *
          doctest::skip(!on_postgresql())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer pooled(pool, "pooled");
  (void)pooled.consume(kanji, [](soci::session& s, Delivery& d) {
    s << "set client_encoding to 'LATIN1'";
    d.store("receipt");
  });
  CHECK(pooled.consume(kanji, add_effect).stored == "receipt");

  const auto sql = db.session();
  TxConsumer own(*sql, "own");
  CHECK(thrown_by([&] {
          (void)own.consume(kanji, [](soci::session& s, Delivery&) {
            s << "set client_encoding to 'LATIN1'";
            s.commit();
          });
        }) == "transaction_lost");
  *sql << "set client_encoding to 'UTF8'";
  CHECK(own.consume(kanji, add_effect).outcome == Outcome::consumed);
}

TEST_CASE("a Transaction in which a claim has thrown commits nothing") {
  EffectDatabase db;
  const auto sql = db.session();
  {
    Transaction transaction(*sql);
    CHECK(thrown_by([&] { transaction.claim("svc", {.business_key = ""}); }) == "invalid_key");
    CHECK(transaction.claim("svc", {.business_key = "another"}) == Claim::claimed);
    *sql << "insert into effect values ('unclaimed')";
    CHECK(thrown_by([&] { transaction.commit(); }) == "transaction_lost");
  }
  CHECK(db.effects() == 0);
  CHECK(db.claims() == 0);
  if (one_writer()) return;
  *sql << (on_mysql() ? "set innodb_lock_wait_timeout = 1" : "set lock_timeout = '200ms'");
  const auto other = db.session();
  Transaction first(*other);
  CHECK(first.claim("svc", order) == Claim::claimed);
  Transaction second(*sql);
  CHECK_THROWS_AS(second.claim("svc", order), soci::soci_error);
  quietly([&] { *sql << "insert into effect values ('unclaimed')"; });
  CHECK(thrown_by([&] { second.commit(); }) == "transaction_lost");
  CHECK(db.effects() == 0);
  first.rollback();
}

TEST_CASE("a key that a Transaction claims twice is a duplicate, unless the caller has committed its first claim") {
  EffectDatabase db;
  const auto sql = db.session();
  {
    Transaction transaction(*sql);
    CHECK(transaction.claim("svc", order) == Claim::claimed);
    CHECK(transaction.claim("svc", order) == Claim::already_consumed);
    transaction.commit();
  }
  CHECK(db.text("select state from txinbox_consumed_message") == "consumed");
  if (!on_mysql()) return;
  Transaction transaction(*sql);
  CHECK(transaction.claim("svc", kanji) == Claim::claimed);
  *sql << "commit";
  CHECK(thrown_by([&] { transaction.claim("svc", kanji); }) == "transaction_lost");
}

TEST_CASE("a Transaction that has ended accepts no other claim, and its committed claim stays consumed") {
  EffectDatabase db;
  const auto sql = db.session();
  {
    Transaction transaction(*sql);
    CHECK(transaction.claim("svc", order) == Claim::claimed);
    transaction.commit();
    CHECK(thrown_by([&] { transaction.claim("svc", {.business_key = "later"}); }) == "transaction_lost");
    transaction.rollback();
  }
  CHECK(db.text("select state from txinbox_consumed_message") == "consumed");
  Transaction rolled_back(*sql);
  CHECK(rolled_back.claim("svc", {.business_key = "other"}) == Claim::claimed);
  rolled_back.rollback();
  CHECK(thrown_by([&] { rolled_back.claim("svc", {.business_key = "other"}); }) == "transaction_lost");
  CHECK(db.claims() == 1);
}

TEST_CASE("the text of transaction_lost says whether the message runs again, and what to do") {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  const auto text_of = [&](const char* statement) {
    try {
      (void)consumer.consume({.business_key = statement}, [&](soci::session& s, Delivery&) { s << statement; });
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(text_of("commit").find(refuses_foreign_commit() ? "refused" : "txinbox forget") != std::string::npos);
  CHECK(text_of("rollback").find("runs again") != std::string::npos);
}

}  // namespace
}  // namespace txinbox::test
