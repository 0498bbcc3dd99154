// The quick status counts as the status does, without the whole consumed-message table.

#include <algorithm>
#include <chrono>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/inspect.hpp>
#include <txinbox/operations.hpp>
#include <txinbox/txinbox.hpp>

#include "support/rows.hpp"
#include "support/sql_time.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

QuickConsumerStatus quick_of(const TestDatabase& db, const std::string& consumer) {
  const QuickStatus all = quick_status(*db.session());
  const auto found = std::ranges::find(all.consumers, consumer, &QuickConsumerStatus::consumer);
  REQUIRE(found != all.consumers.end());
  return *found;
}

void add_failure(const TestDatabase& db, const std::string& key) {
  db.run("insert into txinbox_failed_message (consumer, business_key, attempts) values ('svc', '" + key + "', 2)");
}

void drop_lease_index(const TestDatabase& db) {
  db.run("drop index txinbox_consumed_message_lease" + std::string(on_mysql() ? " on txinbox_consumed_message" : ""));
}

TEST_CASE("the quick status of an empty database has no consumers") {
  const TestDatabase db;
  const QuickStatus found = quick_status(*db.session());
  CHECK(found.database == database());
  CHECK(!found.server_version.empty());
  CHECK(found.schema_version == migrations(database()).back().version);
  CHECK(found.consumers.empty());
  CHECK_FALSE(found.outbox_oldest);
}

TEST_CASE("the quick status counts failures, parked messages, leases and conflicts as the status does") {
  const TestDatabase db;
  consume(db, "svc", {"done", "parked", "torn", "held", "expired", "failing"});
  consume(db, "it's é", {"1"});
  for (const std::string state : {"parked", "torn"}) {
    set_row(db, state, "state = '" + state + "'");
    add_failure(db, state);
  }
  set_row(db, "failing", "state = 'consuming'");
  for (const char* key : {"failing", "not there", "done"}) add_failure(db, key);
  const std::string leased = "state = 'consuming', lease_owner = 'w', lease_expires_at = ";
  set_row(db, "held", leased + sql_time(1h));
  set_row(db, "expired", leased + sql_time(-1min));
  const std::string hash = on_postgresql() ? "'\\x00'" : "x'00'";
  db.run(
      "insert into txinbox_conflicting_message (consumer, business_key, content_hash, original_hash, reason, "
      "deliveries, first_at, last_at) values ('svc', 'k', " +
      hash + ", " + hash + ", 'consumed', 3, " + sql_time(0s) + ", " + sql_time(0s) + ")");
  db.run("insert into txinbox_consumer (consumer, duplicates, retention, purged) values ('svc', 12, 600, 3)");
  db.run("insert into txinbox_consumer (consumer, retention, purged) values ('', 60, 5)");

  const QuickStatus quick = quick_status(*db.session());
  REQUIRE(quick.consumers.size() == 2);
  CHECK(quick.consumers[0].consumer == "it's é");
  CHECK(quick.purged == 5);
  for (const ConsumerStatus& full : inbox_status(*db.session()).consumers) {
    const QuickConsumerStatus found = quick_of(db, full.consumer);
    CAPTURE(full.consumer);
    CHECK(found.failed == full.failed);
    CHECK(found.parked == full.parked);
    CHECK(found.conflicts == full.conflicts);
    CHECK(found.leases_held == full.leases_held);
    CHECK(found.expired_leases == full.expired_leases);
    CHECK(found.duplicates == full.duplicates);
    CHECK(found.retention == full.retention);
    CHECK(found.purged == full.purged);
    CHECK(found.last_ten_seconds == full.consumed);
    CHECK_FALSE(found.paused);
  }
  const QuickConsumerStatus svc = quick_of(db, "svc");
  CHECK(svc.failed == 2);
  CHECK(svc.parked == 2);
  CHECK(svc.conflicts == 3);
  CHECK(svc.leases_held == 1);
  CHECK(svc.expired_leases == 1);
  CHECK(svc.duplicates == 12);
  CHECK(svc.retention == 60s);
}

TEST_CASE("the quick status counts no lease before the migration V4") {
  const TestDatabase db;
  consume(db, "svc", {"1"});
  set_row(db, "1", "state = 'consuming', lease_owner = 'w', lease_expires_at = " + sql_time(1h));
  CHECK(quick_of(db, "svc").leases_held == 1);
  drop_lease_index(db);
  CHECK_FALSE(quick_of(db, "svc").leases_held);
  CHECK_FALSE(quick_of(db, "svc").expired_leases);
  CHECK(list_leases(*db.session(), {.consumer = "svc"}).size() == 1);
}

TEST_CASE("the quick status counts what was consumed in the last ten seconds") {
  const TestDatabase db;
  consume(db, "svc", {"a", "b", "older", "parked"});
  make_older(db, "business_key = 'older'", 12s);
  set_row(db, "parked", "state = 'parked'");
  CHECK(quick_of(db, "svc").last_ten_seconds == 2);
}

TEST_CASE("the quick status says which consumers are paused, and how old the outbox is") {
  const TestDatabase db;
  consume(db, "svc", {"1"});
  const auto sql = db.session();
  pause_consumer(*sql, "svc", {.actor = "ann", .reason = "r"});
  Outbox::add(*sql, OutgoingMessage{.topic = "t", .payload = "1"});
  db.run("update txinbox_outbox_message set created_at = " + sql_time(-1h));
  QuickStatus found = quick_status(*sql);
  REQUIRE(found.consumers.size() == 1);
  CHECK(found.consumers[0].paused);
  CHECK(found.outbox_oldest);
  CHECK(found.outbox_oldest_age >= 59min);
  db.run("update txinbox_outbox_message set parked_at = " + sql_time(0s));
  CHECK_FALSE(quick_status(*sql).outbox_oldest);
  resume_consumer(*sql, "svc", {.actor = "ann"});
  CHECK_FALSE(quick_of(db, "svc").paused);
  db.run("drop table txinbox_pause");
  db.run("drop table txinbox_outbox_message");
  found = quick_status(*sql);
  CHECK_FALSE(found.outbox_oldest);
}

TEST_CASE("the quick status estimates the rows with the database's statistics") {
  const TestDatabase db;
  std::vector<std::string> keys;
  for (int i = 0; i < 200; ++i) keys.push_back(std::to_string(i));
  consume(db, "svc", keys);
  db.run(here<std::string>("analyze", "analyze table txinbox_consumed_message", "analyze txinbox_consumed_message"));
  const QuickStatus found = quick_status(*db.session());
  REQUIRE(found.estimated_rows);
  CHECK(*found.estimated_rows >= 100);
  CHECK(*found.estimated_rows <= 400);
  CHECK(found.estimated_bytes.has_value() == !on_sqlite3());
}

TEST_CASE("the quick status refuses an open transaction and missing tables") {
  const auto code = [](soci::session& sql) {
    try {
      (void)quick_status(sql);
    } catch (const Error& error) {
      return error.code();
    }
    FAIL("nothing was thrown");
    return ErrorCode{};
  };
  const TestDatabase db;
  const auto sql = db.session();
  sql->begin();
  long long rows = 0;
  *sql << "select count(*) from txinbox_consumed_message", soci::into(rows);
  CHECK(code(*sql) == ErrorCode::transaction_open);
  sql->rollback();
  const TestDatabase empty(TestDatabase::Tables::none);
  CHECK(code(*empty.session()) == ErrorCode::schema_missing);
}

}  // namespace
}  // namespace txinbox::test
