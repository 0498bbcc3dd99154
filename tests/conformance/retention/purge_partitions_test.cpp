// A purge of tables that an operator has partitioned.

#include <chrono>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/old_rows.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// Replaces an empty migrated table by a table with two partitions: `partition_0` and `partition_1`.
void partition(const TestDatabase& db, const std::string& table) {
  db.run("alter table " + table + " rename to as_migrated");
  db.run("create table " + table + " (like as_migrated including all) partition by hash (business_key)");
  db.run("drop table as_migrated");
  for (const std::string remainder : {"0", "1"}) {
    db.run("create table partition_" + remainder + " partition of " + table +
           " for values with (modulus 2, remainder " + remainder + ")");
  }
  migrate(*db.session());  // creates the trigger again
}

/// Makes the rows of `partition_0` old. It inserts them again, so that they have the same ctids as the young rows in
/// `partition_1`.
void age_one_partition(const TestDatabase& db, const std::string& table, const std::string& time) {
  db.run("create table old as select * from partition_0");
  db.run("update old set " + time + " = " + OldRows::ago(25h));
  db.run("truncate partition_0");
  db.run("insert into " + table + " select * from old");
  db.run("drop table old");
  REQUIRE(db.number("select count(*) from partition_0 old join partition_1 young on old.ctid = young.ctid") > 5);
}

TEST_CASE("old rows of one partition are removed, and young rows with the same ctid in another partition stay" *
          doctest::skip(!on_postgresql())) {
  const OldRows db;
  partition(db, "txinbox_consumed_message");
  constexpr int keys = 40;
  db.add("svc", keys, 1h);
  age_one_partition(db, "txinbox_consumed_message", "consumed_at");
  const auto old = static_cast<std::size_t>(db.number("select count(*) from partition_0"));
  CHECK(purge(*db.session(), 24h, {.batch_size = 4, .duty = 1}) == old);
  CHECK(db.number("select count(*) from partition_0") == 0);
  CHECK(db.claims() == keys - static_cast<long long>(old));

  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  for (int i = 0; i < keys; ++i) (void)consumer.consume({.business_key = "k" + std::to_string(i)}, add_effect);
  CHECK(db.effects() == static_cast<long long>(old));
}

TEST_CASE("rows of two partitions with the same time and the same ctid are all removed" *
          doctest::skip(!on_postgresql())) {
  const OldRows db;
  partition(db, "txinbox_consumed_message");
  db.add_at_once("svc", 300, 25h);
  db.add_at_once("other", 300, 25h);
  CHECK(purge(*db.session(), 24h, {.consumer = "svc", .batch_size = 7, .duty = 1}) == 300);
  CHECK(db.claims_of("other") == 300);
}

TEST_CASE("young failures and conflicts stay when old ones with the same ctid in another partition are removed" *
          doctest::skip(!on_postgresql())) {
  const OldRows db;
  constexpr int rows = 40;
  partition(db, "txinbox_failed_message");
  db.add_failed("svc", rows, 1h);
  age_one_partition(db, "txinbox_failed_message", "last_failed_at");
  const auto failed = static_cast<std::size_t>(db.number("select count(*) from partition_0"));
  CHECK(purge(*db.session(), 24h, {.what = Purgeable::failed}) == failed);
  CHECK(db.number("select count(*) from txinbox_failed_message") == rows - static_cast<long long>(failed));

  const OldRows other;
  partition(other, "txinbox_conflicting_message");
  other.add_conflicts("svc", rows, 1h);
  age_one_partition(other, "txinbox_conflicting_message", "last_at");
  const auto conflicts = static_cast<std::size_t>(other.number("select count(*) from partition_0"));
  CHECK(purge(*other.session(), 24h, {.what = Purgeable::conflicts}) == conflicts);
  CHECK(other.number("select count(*) from txinbox_conflicting_message") == rows - static_cast<long long>(conflicts));
}

/// Makes a partition for each of these days, for keys that begin with their day.
void partition_by_day(const TestDatabase& db, const std::string& table) {
  if (on_postgresql()) {
    db.run("alter table " + table + " rename to as_migrated");
    db.run("create table " + table + " (like as_migrated including all) partition by range (business_key)");
    db.run("drop table as_migrated");
    db.run("create table day_1 partition of " + table + " for values from (minvalue) to ('2026-11-02')");
    db.run("create table day_2 partition of " + table + " for values from ('2026-11-02') to ('2026-11-03')");
    db.run("create table later partition of " + table + " default");
    migrate(*db.session());  // creates the trigger again
  } else {
    db.run("alter table " + table +
           " partition by range columns (business_key) (partition day_1 values less than ('2026-11-02'), "
           "partition day_2 values less than ('2026-11-03'), partition later values less than (maxvalue))");
  }
}

void drop_partition(const TestDatabase& db, const std::string& table, const std::string& name) {
  if (on_postgresql()) {
    db.run("alter table " + table + " detach partition " + name);
    db.run("drop table " + name);
  } else {
    db.run("alter table " + table + " drop partition " + name);
  }
}

TEST_CASE("a partition of keys that begin with their day can be dropped in place of a purge" *
          doctest::skip(on_sqlite3())) {
  const EffectDatabase db;
  partition_by_day(db, "txinbox_consumed_message");
  verify(*db.session());
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto consume_day = [&](const std::string& day) {
    int new_keys = 0;
    for (const char* order : {"/a", "/b", "/c"}) {
      new_keys += consumer.consume({.business_key = day + order}, add_effect).outcome == consumed ? 1 : 0;
    }
    return new_keys;
  };
  for (const char* day : {"2026-11-01", "2026-11-02", "2026-11-03"}) {
    CHECK(consume_day(day) == 3);
    CHECK(consume_day(day) == 0);
  }
  drop_partition(db, "txinbox_consumed_message", "day_1");
  CHECK(db.claims() == 6);
  CHECK(consume_day("2026-11-02") == 0);
  CHECK(consume_day("2026-11-03") == 0);
  CHECK(db.effects() == 9);
}

}  // namespace
}  // namespace txinbox::test
