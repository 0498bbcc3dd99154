// Settings that a handler changes on a pool's connection do not affect the claim or the handler of a later message.

#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123"};

using Statements = std::vector<std::string>;

/// The values of settings that handlers on MariaDB or MySQL often change.
std::string settings_met(soci::session& sql, bool mariadb) {
  std::string query =
      "select concat_ws('|', @@completion_type, @@default_storage_engine, @@sql_safe_updates, @@group_concat_max_len, "
      "@@max_error_count, @@sql_mode, @@time_zone, @@insert_id, @@foreign_key_checks, @@wait_timeout, @@autocommit, "
      "unix_timestamp() > 1700000000, ";
  query += mariadb ? "@@check_constraint_checks, @@tx_isolation)" : "@@transaction_isolation)";
  std::string met;
  sql << query, soci::into(met);
  return met;
}

/// Statements that change all of these settings. With max_error_count = 0, the server reports no warnings.
Statements all_changed(bool mariadb) {
  const std::string isolation = mariadb ? "tx_isolation" : "transaction_isolation";
  Statements changes = {"set max_error_count = 0",
                        "set sql_mode = ''",
                        "set session " + isolation + " = 'READ-UNCOMMITTED'",
                        "set time_zone = '+05:00'",
                        "set timestamp = 1000000000",
                        "set completion_type = 1",
                        "set default_storage_engine = 'MEMORY'",
                        "set sql_safe_updates = 1",
                        "set group_concat_max_len = 4444",
                        "set insert_id = 77",
                        "set foreign_key_checks = 0",
                        "set wait_timeout = 4321"};
  if (mariadb) changes.push_back("set check_constraint_checks = 0");
  return changes;
}

/// The settings that a handler finds before and after another handler ran these statements on the connection.
struct Met {
  std::string before;
  std::string after;
};
Met met_after(const Statements& statements, const PoolOptions& options, bool fails = false) {
  const EffectDatabase db;
  Pool pool = db.pool(options);
  TxConsumer consumer(pool, "svc");
  Met met;
  const auto look = [&](std::string& what) {
    return [&](soci::session& sql, Delivery&) { what = settings_met(sql, on_mariadb()); };
  };
  (void)consumer.consume({.business_key = "before"}, look(met.before));
  try {
    (void)consumer.consume({.business_key = "changing"}, [&](soci::session& sql, Delivery&) {
      for (const std::string& each : statements) sql << each;
      if (fails) throw std::runtime_error("after the statements");
    });
  } catch (const std::runtime_error&) {
    CHECK(fails);
  }
  (void)consumer.consume({.business_key = "after"}, look(met.after));
  CHECK(db.number("select count(*) from txinbox_consumed_message where consumed_at < "
                  "utc_timestamp() - interval 1 hour") == 0);
  return met;
}

TEST_CASE("settings of a handler do not reach a later handler" * doctest::skip(!on_mysql())) {
  const bool mariadb = on_mariadb();
  const auto on_connect = [](soci::session& sql) { sql << "set group_concat_max_len = 5555, sql_safe_updates = 0"; };
  for (const bool fails : {false, true}) {
    CAPTURE(fails);
    for (const std::string& each : all_changed(mariadb)) {
      CAPTURE(each);
      const Met met = met_after({each}, {.connections = 1, .on_connect = on_connect}, fails);
      CHECK(met.before == met.after);
      CHECK(met.before.find("|5555|") != std::string::npos);
    }
    const Met met = met_after(all_changed(mariadb), {.connections = 1, .on_connect = on_connect}, fails);
    CHECK(met.before == met.after);
  }
}

TEST_CASE("settings of a handler that switched off session tracking do not reach a later handler" *
          doctest::skip(!on_mysql())) {
  for (const Statements& ends :
       {Statements{"set session_track_system_variables = ''"}, Statements{"set session_track_state_change = 0"},
        Statements{"set session_track_state_change = 0, session_track_system_variables = ''"},
        Statements{"set session_track_system_variables = 'autocommit'"},
        Statements{"set session_track_system_variables = ''", "set session_track_system_variables = '*'"}}) {
    CAPTURE(ends.front());
    Statements statements = ends;
    statements.insert(statements.begin() + 1, "set sql_safe_updates = 1");
    const Met met = met_after(statements, {.connections = 1});
    CHECK(met.before == met.after);
  }
}

TEST_CASE("settings of the user of a connection do not reach the next user" * doctest::skip(!on_mysql())) {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  const std::string before = settings_met(pool.acquire(), on_mariadb());
  {
    const auto connection = pool.acquire();
    for (const std::string& each : all_changed(on_mariadb())) connection.session() << each;
  }
  CHECK(settings_met(pool.acquire(), on_mariadb()) == before);
}

TEST_CASE("a handler that sets the session's clock does not change the time of later claims in the batch" *
          doctest::skip(!on_mysql())) {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto results = consumer.consume_batch(
      messages_of({"a", "b", "c"}),
      [](soci::session& sql, Delivery& delivery) {
        if (delivery.message().business_key == "b")
          throw std::runtime_error("so that each message gets its own savepoint");
        sql << "set timestamp = 1000000000";
      },
      OnFailure::skip);
  CHECK(outcomes(results) == Outcomes{consumed, failed, consumed});
  CHECK(db.number("select count(*) from txinbox_consumed_message where consumed_at > "
                  "utc_timestamp() - interval 1 hour") == 2);
}

TEST_CASE("a temporary table with the name of our table gets no later claim" * doctest::skip(!on_mysql())) {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto shadow = [](soci::session& sql, Delivery&) {
    sql << "create temporary table txinbox_consumed_message(consumer varbinary(64) not null, business_key "
           "varbinary(255) not null, message_id varbinary(255), content_hash varbinary(32), state varchar(16) not "
           "null, attempt_token varbinary(16) not null, lease_owner varbinary(64), lease_fence bigint, "
           "lease_expires_at datetime(6), attempts int, result blob, consumed_at datetime(6) not null, "
           "primary key(consumer, business_key))";
  };
  // The claim of this handler cannot be confirmed, because the temporary table hides it.
  CHECK(thrown_by([&] { (void)consumer.consume({.business_key = "shadowing"}, shadow); }) == "transaction_lost");
  for (int delivery = 0; delivery < 2; ++delivery) {
    for (const char* key : {"next", "third"}) {
      (void)TxConsumer(pool, "svc").consume({.business_key = key}, add_effect);
      Pool other = db.pool(1);
      (void)TxConsumer(other, "svc").consume({.business_key = key}, add_effect);
    }
  }
  CHECK(db.effects() == 2);
  CHECK(db.claims() == 2);
}

// One reply then reports both. The server names the variable, and reports the table only as some change.
TEST_CASE("a temporary table that a procedure made while it set a variable gets no later claim" *
          doctest::skip(!on_mysql())) {
  const EffectDatabase db;
  db.run(
      "create procedure shadow() begin set max_sort_length = 1000; create temporary table txinbox_consumed_message as "
      "select * from effect limit 0; end");
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  try {
    (void)consumer.consume(order, [](soci::session& sql, Delivery& delivery) {
      add_effect(sql, delivery);
      sql << "call shadow()";
    });
  } catch (...) {  // it may be found out at once
  }
  const Message next{.business_key = "next"};
  CHECK(consumer.consume(next, add_effect).outcome == Outcome::consumed);
  CHECK(db.claim_of("next") == "consumed");
}

TEST_CASE("a handler that sets another character set does not fail the batch" * doctest::skip(!on_mysql())) {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto results = consumer.consume_batch(messages_of({"a", "b"}), [](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    if (delivery.index() == 0) sql << "set character_set_connection = ucs2";
  });
  CHECK(outcomes(results) == Outcomes{Outcome::consumed, Outcome::consumed});
  CHECK(db.effects() == 2);
}

TEST_CASE("functions on a handler's search_path do not replace those of the server" * doctest::skip(!on_postgresql())) {
  const EffectDatabase db;
  db.run("create schema if not exists evil");
  for (const char* function : {"set_config(text, text, boolean)", "current_setting(text)", "convert_from(bytea, name)",
                               "encode(bytea, text)", "decode(text, text)"}) {
    const bool bytes = std::string(function).starts_with("decode");
    db.run(std::string("create or replace function evil.") + function + " returns " + (bytes ? "bytea" : "text") +
           " language sql as $$ select 'evil'::" + (bytes ? "bytea" : "text") + " $$");
  }
  {
    Pool pool = db.pool(1);
    TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 1}});
    std::string path;
    CHECK(consumer
              .consume(order,
                       [&](soci::session& sql, Delivery& delivery) {
                         add_effect(sql, delivery);
                         delivery.store("result");
                         sql << "select pg_catalog.current_setting('search_path')", soci::into(path);
                         sql << "set search_path = evil, pg_catalog, " + path;
                       })
              .stored == "result");
    for (const char* key : {"next", "third"}) {
      CHECK(consumer.consume({.business_key = key}, add_effect).outcome == Outcome::consumed);
    }
  }
  db.run("drop schema evil cascade");
  CHECK(db.effects() == 3);
}

TEST_CASE("triggers and foreign keys that a handler switches off are on again for the next handler" *
          doctest::skip(!on_postgresql())) {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  for (const std::string& key : {std::string("right"), std::string("wrong")}) {
    CAPTURE(key);
    try {
      (void)consumer.consume({.business_key = key}, [&](soci::session& sql, Delivery&) {
        sql << "set session_replication_role = replica";
        if (key == "wrong") throw std::runtime_error("after the statements");
      });
    } catch (const std::runtime_error&) {  // NOLINT(bugprone-empty-catch)
    }
    std::string met;
    (void)consumer.consume({.business_key = "after " + key}, [&](soci::session& sql, Delivery&) {
      sql << "select current_setting('session_replication_role')", soci::into(met);
    });
    CHECK(met == "origin");
  }
}

}  // namespace
}  // namespace txinbox::test
