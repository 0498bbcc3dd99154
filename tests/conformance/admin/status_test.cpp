// The counts of the status beyond the number of rows.

#include <algorithm>
#include <chrono>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/inspect.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/rows.hpp"
#include "support/sql_time.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

ConsumerStatus status_of(const TestDatabase& db, const std::string& consumer) {
  const InboxStatus all = inbox_status(*db.session());
  const auto found = std::ranges::find(all.consumers, consumer, &ConsumerStatus::consumer);
  REQUIRE(found != all.consumers.end());
  return *found;
}

TEST_CASE("status counts as failed the messages with a failure that are not consumed, parked, torn or discarded") {
  const TestDatabase db;
  consume(db, "svc", {"consumed", "parked", "torn", "discarded", "leased"});
  for (const std::string state : {"parked", "torn", "discarded"}) set_row(db, state, "state = '" + state + "'");
  set_row(db, "leased", "state = 'consuming'");
  for (const std::string key : {"consumed", "parked", "torn", "discarded", "leased", "not there", "begun"}) {
    const std::string attempts = key == "begun" ? "0" : "2";
    db.run("insert into txinbox_failed_message (consumer, business_key, attempts) values ('svc', '" + key + "', " +
           attempts + ")");
  }
  db.run("insert into txinbox_failed_message (consumer, business_key, attempts) values ('only failed', 'k', 1)");
  const ConsumerStatus found = status_of(db, "svc");
  CHECK(found.failed == 2);
  CHECK(found.parked == 2);
  CHECK(found.discarded == 1);
  CHECK(found.consuming == 1);
  CHECK(found.consumed == 1);
  CHECK(status_of(db, "only failed").failed == 1);
}

TEST_CASE("status counts conflicts by deliveries, not by contents") {
  const TestDatabase db;
  const std::string hash = on_postgresql() ? "'\\x" : "x'";
  for (const char* n : {"01", "02"}) {
    db.run(
        "insert into txinbox_conflicting_message (consumer, business_key, content_hash, original_hash, reason, "
        "deliveries, first_at, last_at) values ('svc', 'k', " +
        hash + n + "', " + hash + "00', 'consumed', 3, " + sql_time(0s) + ", " + sql_time(0s) + ")");
  }
  CHECK(status_of(db, "svc").conflicts == 6);
}

TEST_CASE("status counts leases as held, expired or released") {
  const TestDatabase db;
  consume(db, "svc", {"held", "run out", "released", "done"});
  const std::string leased = "state = 'consuming', lease_owner = 'w', lease_expires_at = ";
  set_row(db, "held", leased + sql_time(1h));
  set_row(db, "run out", leased + sql_time(-1min));
  set_row(db, "released", "state = 'consuming', lease_owner = null, lease_expires_at = " + sql_time(-1min));
  set_row(db, "done", "lease_owner = 'w', lease_expires_at = " + sql_time(-1min));
  const ConsumerStatus found = status_of(db, "svc");
  CHECK(found.consuming == 3);
  CHECK(found.leases_held == 1);
  CHECK(found.expired_leases == 1);
}

TEST_CASE("the rate counts messages that were consumed in the last minute") {
  const TestDatabase db;
  consume(db, "svc", {"a", "b", "older", "parked"});
  make_older(db, "business_key in ('a', 'b')", 5s);
  make_older(db, "business_key = 'older'", 70s);
  set_row(db, "parked", "state = 'parked'");
  CHECK(status_of(db, "svc").last_minute == 2);
}

TEST_CASE("the purge backlog counts rows that are older than the shortest retention of an earlier purge") {
  const TestDatabase db;
  consume(db, "a", {"1", "2", "3", "parked"});
  consume(db, "b", {"4", "5"});
  make_older(db, "business_key in ('1', '4', 'parked')", 3h);
  make_older(db, "business_key in ('2', '5')", 30min);
  set_row(db, "parked", "state = 'parked'");
  CHECK(status_of(db, "a").purge_backlog == 0);
  CHECK_FALSE(status_of(db, "a").retention);
  db.run("insert into txinbox_consumer (consumer, retention, purged, purged_at) values ('', 7200, 5, " + sql_time(-1h) +
         ")");
  db.run("insert into txinbox_consumer (consumer, retention, purged, purged_at) values ('a', 600, 3, " + sql_time(-2h) +
         ")");
  const ConsumerStatus a = status_of(db, "a");
  CHECK(a.retention == 10min);
  CHECK(a.purge_backlog == 2);
  CHECK(a.purged == 3);
  const ConsumerStatus b = status_of(db, "b");
  CHECK(b.retention == 2h);
  CHECK(b.purge_backlog == 1);
  CHECK(a.purged_at == b.purged_at);
  CHECK(inbox_status(*db.session()).purged == 5);
  db.run("delete from txinbox_consumer where consumer = ''");
  CHECK(status_of(db, "a").purge_backlog == 2);
  CHECK(status_of(db, "b").purge_backlog == 0);
}

TEST_CASE("status reports the oldest duplicate with its time") {
  const TestDatabase db;
  db.run(
      "insert into txinbox_consumer (consumer, duplicates, oldest_duplicate, oldest_duplicate_at) values ('svc', 12, "
      "345678, " +
      sql_time(0s) + ")");
  const ConsumerStatus found = status_of(db, "svc");
  CHECK(found.duplicates == 12);
  CHECK(found.oldest_duplicate == 345'678ms);
  CHECK(found.oldest_duplicate_at.has_value());
}

TEST_CASE("status can read a schema of version 1") {
  const TestDatabase db(TestDatabase::Tables::none);
  run_statements(db, text_of(migration_files().front()));
  const InboxStatus found = inbox_status(*db.session());
  CHECK(found.schema_version == 1);
  CHECK(found.consumers.empty());
  CHECK_FALSE(find_message(*db.session(), "svc", "k"));
}

TEST_CASE("find_message returns the lease, the content, the failures and the conflicts of a key") {
  const TestDatabase db;
  consume(db, "svc", {"k", "plain"});
  const std::string bytes = on_postgresql() ? "'\\x" : "x'";
  set_row(db, "k",
          "state = 'consuming', lease_owner = 'worker', lease_fence = 7, content_hash = " + bytes +
              "AB01', lease_expires_at = " + sql_time(1min));
  db.run(
      "insert into txinbox_failed_message (consumer, business_key, attempts, last_error, last_failed_at) values "
      "('svc', 'k', 3, 'deadlock', " +
      sql_time(0s) + ")");
  db.run(
      "insert into txinbox_conflicting_message (consumer, business_key, content_hash, original_hash, reason, "
      "deliveries, first_at, last_at) values ('svc', 'k', " +
      bytes + "02', " + bytes + "AB01', 'consumed', 4, " + sql_time(0s) + ", " + sql_time(0s) + ")");
  const auto found = find_message(*db.session(), "svc", "k");
  REQUIRE(found);
  CHECK(found->lease_owner == "worker");
  CHECK(found->lease_fence == 7);
  CHECK(found->lease_expires_at.has_value());
  CHECK(found->content_hash == "ab01");
  CHECK(found->failures == 3);
  CHECK(found->last_error == "deadlock");
  CHECK(found->last_failed_at.has_value());
  CHECK(found->conflicts == 4);
  const auto plain = find_message(*db.session(), "svc", "plain");
  REQUIRE(plain);
  CHECK_FALSE(plain->lease_fence);
  CHECK((plain->lease_owner + plain->content_hash + plain->last_error).empty());
  CHECK(plain->failures + plain->conflicts == 0);
}

}  // namespace
}  // namespace txinbox::test
