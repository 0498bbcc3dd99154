// The findings that doctor reads from the rows of the inbox.

#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/finding.hpp>
#include <txinbox/operations.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/rows.hpp"
#include "support/schema_tools.hpp"
#include "support/sql_time.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

bool tells(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("doctor reports leases that expired minutes ago, and no lease that is held, released or just expired") {
  const TestDatabase db;
  consume(db, "svc", {"held", "released", "just over", "done"});
  const std::string leased = "state = 'consuming', lease_owner = 'w', lease_expires_at = ";
  set_row(db, "held", leased + sql_time(1h));
  set_row(db, "just over", leased + sql_time(-10s));
  set_row(db, "released", "state = 'consuming', lease_owner = null, lease_expires_at = " + sql_time(-1h));
  set_row(db, "done", "lease_owner = 'w', lease_expires_at = " + sql_time(-1h));
  CHECK(findings_beyond_clean_server(db).empty());

  consume(db, "svc", {"run out 1", "run out 2"});
  set_row(db, "run out 1", leased + sql_time(-1h));
  set_row(db, "run out 2", leased + sql_time(-2h));
  const auto found = findings_beyond_clean_server(db);
  REQUIRE(found.size() == 1);
  CHECK(found.front().severity == Severity::warning);
  CHECK(found.front().subject == "consumer svc");
  CHECK_MESSAGE(found.front().found.starts_with("expired leases that nobody has taken over: 2,"), found.front().found);
  // The SQL in the remedy returns exactly these messages.
  const std::string& remedy = found.front().remedy;
  const auto sql = remedy.substr(remedy.find("SELECT business_key"));
  CHECK(db.number("select count(*) from (" + sql + ") found") == 2);
  CHECK(db.text("select min(business_key) from (" + sql + ") found") == "run out 1");
}

TEST_CASE("doctor notes a consumer that is paused, and who has paused it") {
  const TestDatabase db;
  Pool pool = db.pool(1);
  const OperatorAction by{.actor = "ann", .reason = "a wrong version"};
  pause_consumer(pool.acquire(), "svc", by);
  pause_consumer(pool.acquire(), "over", by);
  CHECK(resume_consumer(pool.acquire(), "over", by));
  const auto found = findings_beyond_clean_server(db);
  REQUIRE(found.size() == 1);
  CHECK(found.front().severity == Severity::note);
  CHECK(found.front().subject == "consumer svc");
  CHECK_MESSAGE(found.front().found.ends_with(" UTC by ann: a wrong version"), found.front().found);
  CHECK(tells(found.front().remedy, "resume --consumer svc"));
}

TEST_CASE("doctor does not read pauses while the migration of their table is pending") {
  const TestDatabase db;
  db.run("drop table txinbox_pause");
  db.run("delete from txinbox_schema where version >= 3");
  const auto found = findings_beyond_clean_server(db);
  REQUIRE(found.size() == 1);
  CHECK(found.front().subject == "txinbox_schema");
}

TEST_CASE("doctor notes parked messages and warns of torn messages, for each consumer") {
  const TestDatabase db;
  consume(db, "a", {"1", "2", "3"});
  consume(db, "b", {"4", "5"});
  for (const char* key : {"1", "2", "4"}) set_row(db, key, "state = 'parked'");
  set_row(db, "3", "state = 'torn'");
  set_row(db, "5", "state = 'discarded'");
  const auto found = findings_beyond_clean_server(db);
  REQUIRE(found.size() == 3);
  CHECK(found[0].severity == Severity::warning);
  CHECK(found[0].subject == "consumer a");
  CHECK(tells(found[0].found, "torn messages: 1"));
  CHECK(tells(found[0].remedy, "repair the data"));
  CHECK(tells(found[0].remedy, "txinbox forget --consumer a"));
  CHECK_FALSE(tells(found[0].remedy, "discard"));
  CHECK(db.text(found[0].remedy.substr(found[0].remedy.find("SELECT business_key"))) == "3");
  CHECK(found[1].severity == Severity::note);
  CHECK(found[1].subject == "consumer a");
  CHECK(tells(found[1].found, "parked messages: 2"));
  CHECK(tells(found[1].remedy, "failed list --consumer a"));
  CHECK(found[2].severity == Severity::note);
  CHECK(found[2].subject == "consumer b");
}

TEST_CASE("doctor warns when retention is below twice the age of the oldest duplicate") {
  const TestDatabase db;
  const auto set = [&](const std::string& consumer, const std::string& retention, const std::string& oldest) {
    db.run("delete from txinbox_consumer where consumer = '" + consumer + "'");
    db.run(
        "insert into txinbox_consumer (consumer, duplicates, oldest_duplicate, oldest_duplicate_at, retention, "
        "purged_at) values ('" +
        consumer + "', 1, " + oldest + ", " + sql_time(0s) + ", " + retention + ", " + sql_time(0s) + ")");
  };
  set("svc", "7200", "3600000");
  CHECK(findings_beyond_clean_server(db).empty());
  set("svc", "null", "360000000");
  CHECK(findings_beyond_clean_server(db).empty());
  set("svc", "7199", "3600000");
  const auto found = findings_beyond_clean_server(db);
  REQUIRE(found.size() == 1);
  CHECK(found.front().severity == Severity::warning);
  CHECK(found.front().subject == "consumer svc");
  CHECK(tells(found.front().found, "60.0 minutes after its original"));
  CHECK(tells(found.front().found, "kept rows for 120.0 minutes"));
  CHECK(tells(found.front().remedy, "--older-than 3h"));

  set("svc", "720000", "3600000");
  CHECK(findings_beyond_clean_server(db).empty());
  set("", "60", "null");  // a purge of all consumers
  CHECK(findings_beyond_clean_server(db).size() == 1);
}

TEST_CASE("doctor notes that no purge runs if rows are older than a month") {
  const TestDatabase db;
  consume(db, "svc", {"k"});
  make_older(db, "business_key = 'k'", 29 * 24h);
  CHECK(findings_beyond_clean_server(db).empty());
  make_older(db, "business_key = 'k'", 31 * 24h);
  const auto found = findings_beyond_clean_server(db);
  REQUIRE(found.size() == 1);
  CHECK(found.front().severity == Severity::note);
  CHECK(found.front().subject == "retention");
  db.run("insert into txinbox_consumer (consumer, retention, purged_at) values ('', 9000000, " + sql_time(0s) + ")");
  CHECK(findings_beyond_clean_server(db).empty());
}

}  // namespace
}  // namespace txinbox::test
