// Operators read the status of the outbox, and list, retry and discard its messages.

#include <chrono>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/finding.hpp>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/eventually.hpp"
#include "support/recording_publisher.hpp"
#include "support/relay_kit.hpp"
#include "support/schema_tools.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// An outbox with one message in each state: waiting, failing and parked.
struct Scene {
  TestDatabase db;
  std::vector<std::string> ids;

  Scene() {
    const std::vector<OutgoingMessage> messages{{.topic = "stock", .key = "w", .type = "T", .payload = "1"},
                                                {.topic = "stock", .key = "f", .payload = "2"},
                                                {.topic = "mail", .key = "p", .payload = std::string("\xff\0", 2)}};
    ids = Outbox::add(*db.session(), messages);
    set("f", "attempts = 2, last_error = 'no route'");
    set("p", "attempts = 3, last_error = 'bad schema', parked_at = " +
                 here<std::string>("'2026-01-31 23:59:59.123'", "'2026-01-31 23:59:59.123'",
                                   "'2026-01-31 23:59:59.123+00'"));
  }

  void set(const std::string& key, const std::string& what) const {
    db.run("update txinbox_outbox_message set " + what + " where aggregateid = '" + key + "'");
  }
  long long rows() const { return db.number("select count(*) from txinbox_outbox_message"); }
};

TEST_CASE("the status has the count of each state, the oldest message and the relays") {
  const Scene scene;
  OutboxStatus status = outbox_status(*scene.db.session());
  CHECK(status.waiting == 1);
  CHECK(status.failing == 1);
  CHECK(status.parked == 1);
  CHECK(status.oldest.has_value());
  CHECK(status.oldest_age >= 0ms);
  CHECK(status.relays.empty());
  CHECK(status.free_parts == 64);

  Pool pool = scene.db.pool(1);
  RecordingPublisher broker;
  {
    const OutboxRelay relay(pool, broker.publisher(), {});
    CHECK(eventually([&] { return outbox_status(*scene.db.session()).free_parts == 0; }));
    status = outbox_status(*scene.db.session());
    REQUIRE(status.relays.size() == 1);
    CHECK(status.relays[0].parts == 64);
    CHECK(status.relays[0].remaining > 0ms);
    CHECK(status.relays[0].name.find(':') != std::string::npos);
    CHECK(broker.confirmed(2).size() == 2);
  }
  status = outbox_status(*scene.db.session());
  CHECK(status.relays.empty());
  CHECK(status.free_parts == 64);
  CHECK(status.parked == 1);
  CHECK(status.waiting + status.failing == 0);
  CHECK_FALSE(status.oldest.has_value());
}

TEST_CASE("the parts of a relay whose lease has expired count as free") {
  const Scene scene;
  Pool pool = scene.db.pool(1);
  scene.db.run("delete from txinbox_outbox_message");
  const OutboxRelay relay(pool, RecordingPublisher().publisher(), {.lease = 24h});
  CHECK(eventually([&] { return outbox_status(*scene.db.session()).free_parts == 0; }));
  scene.db.run("update txinbox_outbox_relay set lease_expires_at = started_at");
  const OutboxStatus status = outbox_status(*scene.db.session());
  REQUIRE(status.relays.size() == 1);
  CHECK(status.relays[0].remaining <= 0ms);
  CHECK(status.free_parts == 64);
}

TEST_CASE("the list has the selected messages in the order of insertion") {
  const Scene scene;
  const auto sql = scene.db.session();
  const auto all = list_outbox(*sql, {.payloads = true});
  REQUIRE(all.size() == 3);
  CHECK(all[0].id == scene.ids[0]);
  CHECK(all[0].topic == "stock");
  CHECK(all[0].key == "w");
  CHECK(all[0].type == "T");
  CHECK(all[0].state == OutboxState::waiting);
  CHECK(all[0].payload == "1");
  CHECK(all[1].state == OutboxState::failing);
  CHECK(all[1].attempts == 2);
  CHECK(all[1].last_error == "no route");
  CHECK(all[2].state == OutboxState::parked);
  using namespace std::chrono;
  CHECK(floor<milliseconds>(all[2].parked_at.value()) == sys_days(2026y / January / 31) + 24h - 1s + 123ms);
  CHECK(all[2].payload == std::string("\xff\0", 2));

  const auto ids_of = [&](const OutboxFilter& filter) {
    std::vector<std::string> ids;
    for (const auto& each : list_outbox(*sql, filter)) {
      ids.push_back(each.id);
      CHECK(!each.payload);
    }
    return ids;
  };
  using Ids = std::vector<std::string>;
  CHECK(ids_of({.id = scene.ids[1]}) == Ids{scene.ids[1]});
  CHECK(ids_of({.topic = "stock"}) == Ids{scene.ids[0], scene.ids[1]});
  CHECK(ids_of({.key = "p"}) == Ids{scene.ids[2]});
  CHECK(ids_of({.state = OutboxState::failing}) == Ids{scene.ids[1]});
  CHECK(ids_of({.limit = 2}) == Ids{scene.ids[0], scene.ids[1]});
  CHECK(ids_of({.key = "unknown"}).empty());
  CHECK(thrown_by([&] { (void)list_outbox(*sql, {.id = "x"}); }) == "invalid_argument");
}

TEST_CASE("a parked message that is retried is published") {
  const Scene scene;
  const auto sql = scene.db.session();
  CHECK(retry_outbox(*sql, {.id = scene.ids[0]}) == 0);
  CHECK(retry_outbox(*sql, {.id = scene.ids[1]}) == 0);
  Pool pool = scene.db.pool(1);
  RecordingPublisher broker;
  const OutboxRelay relay(pool, broker.publisher(), {.poll = 5ms, .sweep = 50ms});
  CHECK(broker.confirmed(2).size() == 2);
  CHECK(retry_outbox(*sql, {.topic = "mail"}) == 1);
  CHECK(broker.confirmed(3).size() == 3);
  CHECK(eventually([&] { return scene.rows() == 0; }));
}

TEST_CASE("after a retry, the attempts of a message count from zero") {
  const Scene scene;
  const auto sql = scene.db.session();
  CHECK(retry_outbox(*sql, {.id = scene.ids[2]}) == 1);
  const auto found = list_outbox(*sql, {.id = scene.ids[2]});
  REQUIRE(found.size() == 1);
  CHECK(found[0].state == OutboxState::waiting);
  CHECK(found[0].attempts == 0);
}

TEST_CASE("discard removes parked and failing messages, and waiting messages only if the filter selects their state") {
  const Scene scene;
  const auto sql = scene.db.session();
  CHECK(discard_outbox(*sql, {.id = scene.ids[0]}) == 0);
  CHECK(discard_outbox(*sql, {.limit = 1}) == 1);
  CHECK(scene.rows() == 2);
  CHECK(discard_outbox(*sql, {}) == 1);
  CHECK(scene.rows() == 1);
  CHECK(discard_outbox(*sql, {.state = OutboxState::waiting}) == 1);
  CHECK(scene.rows() == 0);
}

TEST_CASE("doctor warns of messages that no relay publishes, and notes parked messages") {
  const Scene scene;
  const auto sql = scene.db.session();
  const auto found = [&] {
    std::string all;
    for (const Finding& each : findings_about(*sql, "outbox")) {
      all += std::string(to_string(each.severity)) + ": " + each.found + "\n";
    }
    return all;
  };
  CHECK(found() == "note: parked messages: 1\n");
  scene.set("w", "created_at = " +
                     here<std::string>("'2026-01-31 23:59:59'", "'2026-01-31 23:59:59'", "'2026-01-31 23:59:59+00'"));
  CHECK(found().starts_with("warning: the oldest message that is not published was added at 2026-01-31 23:59:59"));
  CHECK(found().find("no relay runs") != std::string::npos);
  scene.db.run("delete from txinbox_outbox_message");
  CHECK(found().empty());
}

TEST_CASE("a change of many messages ends at its limit, or when all were tried") {
  const TestDatabase db;
  add(db, "a", std::vector<std::string>(2'500, "x"));
  const auto sql = db.session();
  CHECK(discard_outbox(*sql, {.state = OutboxState::waiting, .limit = 1'200}) == 1'200);
  CHECK(db.number("select count(*) from txinbox_outbox_message") == 1'300);
  db.run("update txinbox_outbox_message set attempts = 1, parked_at = created_at");
  CHECK(retry_outbox(*sql, {.limit = 1}) == 1);
  const auto all = std::numeric_limits<std::size_t>::max();
  CHECK(retry_outbox(*sql, {.limit = all}) == 1'299);
  CHECK(discard_outbox(*sql, {.limit = all}) == 0);  // neither parked nor failing
  CHECK(discard_outbox(*sql, {.state = OutboxState::waiting, .limit = all}) == 1'300);
}

}  // namespace
}  // namespace txinbox::test
