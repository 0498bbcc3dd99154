// A transaction with a snapshot fails if another one has changed what it changes: the handler runs again.

#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123"};

/// Sessions whose transactions have a snapshot.
PoolOptions with_snapshots() {
  return {.connections = 1, .on_connect = [](soci::session& sql) {
            if (on_postgresql()) {
              sql << "set default_transaction_isolation = 'repeatable read'";
              return;
            }
            sql << "set session transaction isolation level repeatable read";
            sql << "set session innodb_snapshot_isolation = 1";
          }};
}

/// Adds one to the counter, which somebody else changes after the handler's first run has read it.
void count(EffectDatabase& db, soci::session& sql, Delivery& d) {
  long long n = 0;
  sql << "select n from counter", soci::into(n);
  if (d.attempt() == 1) db.run("update counter set n = n + 10");
  sql << "update counter set n = :n", soci::use(n + 1);
}

void make_counter(EffectDatabase& db) {
  db.run("create table counter (n integer)");
  db.run("insert into counter values (0)");
}

TEST_CASE("a message runs again after a serialization failure" * doctest::skip(!has_serialization_failures())) {
  EffectDatabase db;
  make_counter(db);
  Pool pool = db.pool(with_snapshots());
  TxConsumer consumer(pool, "svc");
  int runs = 0;
  const Result result = consumer.consume(order, [&](soci::session& sql, Delivery& d) {
    ++runs;
    count(db, sql, d);
    add_effect(sql, d);
  });
  CHECK(result.outcome == Outcome::consumed);
  CHECK(runs == 2);
  CHECK(db.number("select n from counter") == 11);
  CHECK(db.effects() == 1);
}

TEST_CASE("a handler that goes on after a serialization failure is not acknowledged, and leaves no effect" *
          doctest::skip(!has_serialization_failures())) {
  EffectDatabase db;
  make_counter(db);
  Pool pool = db.pool(with_snapshots());
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 1}});
  std::string in_transaction;
  CHECK_THROWS((void)consumer.consume(order, [&](soci::session& sql, Delivery& d) {
    add_effect(sql, d);
    try {
      count(db, sql, d);
    } catch (const soci::soci_error&) {  // this is what it does wrong
    }
    if (on_mariadb()) sql << "select @@in_transaction", soci::into(in_transaction);
    try {
      add_effect(sql, d);
    } catch (const soci::soci_error&) {  // PostgreSQL accepts only a rollback
      CHECK(on_postgresql());
    }
  }));
  // MariaDB has rolled the whole transaction back, as after a deadlock.
  if (on_mariadb()) CHECK(in_transaction == "0");
  CHECK(db.effects() == 0);
  CHECK(db.text("select count(*) from txinbox_consumed_message") == "0");
}

}  // namespace
}  // namespace txinbox::test
