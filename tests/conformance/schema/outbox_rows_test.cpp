// The tables of the outbox without the rows that the migration inserts.

#include <atomic>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/finding.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/eventually.hpp"
#include "support/recording_publisher.hpp"
#include "support/relay_kit.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("rows that are missing in the outbox are an error, and migrate inserts them") {
  const TestDatabase db;
  std::string table, found;
  SUBCASE("one part") {
    db.run("delete from txinbox_outbox_part where part = 63");
    table = "txinbox_outbox_part";
    found = "it has 63 of its 64 rows";
  }
  SUBCASE("all parts") {
    db.run("delete from txinbox_outbox_part");
    table = "txinbox_outbox_part";
    found = "it has 0 of its 64 rows";
  }
  SUBCASE("the id of the database") {
    db.run("delete from txinbox_outbox_database");
    table = "txinbox_outbox_database";
    found = "it has 0 of its 1 rows";
  }
  const auto sql = db.session();
  const std::vector<Finding> findings = findings_about(*sql, table);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::error);
  CHECK(findings[0].found == found);
  CHECK_NOTHROW(verify(*sql));  // a consumer needs no outbox
  CHECK(!migrate(*sql).empty());
  CHECK(findings_about(*sql, table).empty());
  CHECK(migrate(*sql).empty());
}

TEST_CASE("a relay reports that parts are missing, and publishes after migrate") {
  const TestDatabase db;
  db.run("delete from txinbox_outbox_part where part > 0");
  for (int i = 0; i < 20; ++i) add(db, std::to_string(i), {std::to_string(i)});
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  std::atomic<bool> reported = false;
  const OutboxRelay relay(pool, broker.publisher(), quick([&](const RelayEvent& event) {
                            const bool is_error = event.type == RelayEventType::error;
                            if (is_error && error_class(event.error) == "schema_mismatch") reported = true;
                          }));
  CHECK(eventually([&] { return reported.load(); }));
  CHECK(broker.confirmed(0).empty());
  migrate(*db.session());
  CHECK(broker.confirmed(20).size() == 20);
  CHECK(outbox_becomes_empty(db));
}

TEST_CASE("sql_select_limit hides no part and no relay" * doctest::skip(!on_mysql())) {
  const TestDatabase db;
  Pool pool = open_pool(
      db.url(), {.connections = 2, .on_connect = [](soci::session& sql) { sql << "set sql_select_limit = 1"; }});
  for (int i = 0; i < 20; ++i) add(db, std::to_string(i), {std::to_string(i)});
  RecordingPublisher broker;
  const OutboxRelay relay(pool, broker.publisher(), quick());
  const OutboxRelay second(pool, broker.publisher(), quick());
  CHECK(broker.confirmed(20).size() == 20);
  CHECK(eventually([&] {
    const OutboxStatus status = outbox_status(pool.acquire());
    return status.relays.size() == 2 && status.relays[0].parts == 32 && status.relays[1].parts == 32;
  }));
}

}  // namespace
}  // namespace txinbox::test
