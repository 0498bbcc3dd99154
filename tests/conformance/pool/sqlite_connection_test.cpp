// A handler leaves something on a pool's connection to SQLite. This affects at most one later delivery.

#include <functional>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "backend/sqlite3/native.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "support/effects.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123"};

int pass(void*) { return 0; }
void ignore(void*) {}

TEST_CASE("a handler that replaces the commit hook, commits and begins again is detected, and its message is parked" *
          doctest::skip(!on_sqlite3())) {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(thrown_by([&] {
          (void)consumer.consume(order, [](soci::session& sql, Delivery& delivery) {
            add_effect(sql, delivery);
            sqlite3_commit_hook(backend::sqlite3_native(*backend::connection_of(sql)), pass, nullptr);
            sql << "commit";
            sql << "begin";
            add_effect(sql, delivery);
          });
        }) == "transaction_lost");
  CHECK(db.text("select state from txinbox_consumed_message") == "torn");
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::parked);
  CHECK(db.effects() == 1);
}

TEST_CASE("a handler that replaces the rollback hook, rolls back and begins again leaves no rows" *
          doctest::skip(!on_sqlite3())) {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(thrown_by([&] {
          (void)consumer.consume(order, [](soci::session& sql, Delivery& delivery) {
            sqlite3_rollback_hook(backend::sqlite3_native(*backend::connection_of(sql)), ignore, nullptr);
            sql << "rollback";
            sql << "begin";
            add_effect(sql, delivery);
          });
        }) == "transaction_lost");
  CHECK(db.claims() == 0);
  CHECK(db.effects() == 0);
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
}

/// Consumes a message whose handler calls `leave`, and then other messages, which are all consumed.
template <class Leave>
void leaves(
    const Leave& leave, const std::function<void()>& end = [] {}) {
  const EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 1, .lock_timeout = std::chrono::milliseconds(50)});
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 2}, .max_attempts = 1});
  thrown_by([&] {
    (void)consumer.consume(order, [&](soci::session& sql, Delivery& delivery) {
      add_effect(sql, delivery);
      leave(sql);
    });
  });
  CHECK(thrown_by([&] { (void)consumer.consume({.business_key = "next"}, add_effect); }) == "nothing");
  CHECK(thrown_by([&] { (void)consumer.consume({.business_key = "third"}, add_effect); }) == "nothing");
  CHECK(db.effects_of("next") == 1);
  CHECK(db.effects_of("third") == 1);
  CHECK(db.number("select count(*) from txinbox_failed_message where business_key <> 'order123'") == 0);
  end();
}

TEST_CASE("a connection that a handler made read-only is writable for the next message" *
          doctest::skip(!on_sqlite3())) {
  leaves([](soci::session& sql) { sql << "pragma query_only = 1"; });
}

TEST_CASE("an unfinished write statement of a handler does not prevent later commits" * doctest::skip(!on_sqlite3())) {
  sqlite3_stmt* unfinished = nullptr;
  leaves(
      [&](soci::session& sql) {
        sqlite3_finalize(unfinished);
        sqlite3_prepare_v2(backend::sqlite3_native(*backend::connection_of(sql)),
                           "insert into effect values ('x'), ('y') returning id", -1, &unfinished, nullptr);
        REQUIRE(sqlite3_step(unfinished) == SQLITE_ROW);
      },
      [&] { sqlite3_finalize(unfinished); });
}

TEST_CASE("a temporary trigger of a handler on our table is removed with its connection" *
          doctest::skip(!on_sqlite3())) {
  leaves([](soci::session& sql) {
    sql << "create temp trigger in_the_way before insert on main.txinbox_consumed_message "
           "begin select raise(ignore); end";
  });
}

int deny_inserts(void*, int action, const char*, const char*, const char*, const char*) {
  return action == SQLITE_INSERT ? SQLITE_DENY : SQLITE_OK;
}

TEST_CASE("an authorizer of a handler that refuses our statements is removed with its connection" *
          doctest::skip(!on_sqlite3())) {
  leaves([](soci::session& sql) {
    sqlite3_set_authorizer(backend::sqlite3_native(*backend::connection_of(sql)), deny_inserts, nullptr);
  });
}

}  // namespace
}  // namespace txinbox::test
