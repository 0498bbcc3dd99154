// A row of the outbox is one message. Its number can be given again, and its id can come back with other content.

#include <cstdint>
#include <latch>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/finding.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "backend/query.hpp"
#include "backend/registry.hpp"
#include "backend/table_check.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "support/effects.hpp"
#include "support/eventually.hpp"
#include "support/outbox_parts.hpp"
#include "support/recording_publisher.hpp"
#include "support/relay_kit.hpp"
#include "support/schema_tools.hpp"
#include "support/thrown.hpp"
#include "tables/outbox_message_table.hpp"

namespace txinbox::test {
namespace {

constexpr const char* other_id = "00000000-0000-4000-8000-000000000001";

/// A standby takes over without its primary's last row: another message gets the number of that row.
void give_number_again(const TestDatabase& db, const std::string& payload) {
  const std::string seq = std::to_string(db.number("select max(seq) from txinbox_outbox_message"));
  db.run("delete from txinbox_outbox_message");
  const auto sql = db.session();
  Outbox::add(*sql, {.topic = "t", .key = "new", .payload = payload, .id = other_id});
  db.run(
      on_postgresql()
          ? "with moved as (delete from txinbox_outbox_message returning *) insert into txinbox_outbox_message (seq, "
            "id, aggregatetype, aggregateid, type, payload, part) overriding system value select " +
                seq + ", id, aggregatetype, aggregateid, type, payload, part from moved"
          : "update txinbox_outbox_message set seq = " + seq);
}

/// Publishes the message "old". While the publisher is in the call, `meanwhile` changes the table. Then the publisher
/// returns `answer`. Later messages are confirmed. Returns the payloads that were confirmed.
template <class Meanwhile>
std::vector<std::string> publish_old(const TestDatabase& db, const Meanwhile& meanwhile, const PublishResult& answer,
                                     std::size_t confirmed) {
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  std::latch called(1), changed(1);
  const OutboxRelay relay(pool, broker.publisher([&](const OutgoingMessage& message) {
    if (message.payload != "old") return PublishResult{};
    called.count_down();
    changed.wait();
    return answer;
  }),
                          quick());
  called.wait();
  meanwhile();
  changed.count_down();
  auto payloads = broker.payloads(confirmed);
  CHECK(outbox_becomes_empty(db));
  return payloads;
}

TEST_CASE("a late confirmation does not remove another message that has got the same number") {
  const TestDatabase db;
  add(db, "old", {"old"});
  CHECK(publish_old(
            db, [&] { give_number_again(db, "new"); }, {}, 2) == std::vector<std::string>{"old", "new"});
}

TEST_CASE("a late rejection does not park another message that has got the same number") {
  const TestDatabase db;
  add(db, "old", {"old"});
  CHECK(publish_old(
            db, [&] { give_number_again(db, "new"); }, {PublishStatus::rejected, "never"}, 1) ==
        std::vector<std::string>{"new"});
}

/// A consumer whose handler adds one message for the order.
class Publishing {
 public:
  explicit Publishing(const TestDatabase& db) : db_(db), pool_(db.pool(1)), consumer_(pool_, "svc") {}

  /// Lets the handler run again, with a message of this payload. Returns its id.
  std::string run(const std::string& payload) {
    (void)forget(*db_.session(), "svc", "order1");
    std::string id;
    const auto result = consumer_.consume({.business_key = "order1"}, [&](soci::session& sql, Delivery&) {
      id = Outbox::add(sql,
                       {.topic = "t", .key = "k", .type = payload, .payload = payload, .headers = {{"h", payload}}});
    });
    CHECK(result.outcome == Outcome::consumed);
    return id;
  }

 private:
  const TestDatabase& db_;
  Pool pool_;
  TxConsumer consumer_;
};

TEST_CASE("a handler that runs again replaces its message that was not published, also a parked one") {
  const TestDatabase db;
  Publishing service(db);
  const std::string id = service.run("bad");
  add(db, "k", {"later"});
  db.run("update txinbox_outbox_message set attempts = 3, last_error = 'no', parked_at = " +
         here<std::string>("datetime('now')", "utc_timestamp()", "now()") +
         " where attempts = 0 and seq = (select * "
         "from (select min(seq) from txinbox_outbox_message) as first)");
  CHECK(service.run("good") == id);
  const auto all = list_outbox(*db.session(), {.payloads = true});
  REQUIRE(all.size() == 2);
  CHECK(all[0].payload == "later");
  CHECK(all[1].id == id);
  CHECK(all[1].payload == "good");
  CHECK(all[1].type == "good");
  CHECK(all[1].state == OutboxState::waiting);
  CHECK(all[1].attempts == 0);
  CHECK(all[1].last_error.empty());

  Pool pool = db.pool(1);
  RecordingPublisher broker;
  const OutboxRelay relay(pool, broker.publisher(), quick());
  const auto published = broker.confirmed(2);
  REQUIRE(published.size() == 2);
  CHECK(published[1].payload == "good");
  CHECK(published[1].headers.at("h") == "good");
}

TEST_CASE("a late confirmation of the old message does not remove the message that has replaced it") {
  const TestDatabase db;
  Publishing service(db);
  service.run("old");
  CHECK(publish_old(
            db, [&] { service.run("new"); }, {}, 2) == std::vector<std::string>{"old", "new"});
}

/// PostgreSQL: the sequence gives numbers that rows have, as after a restore of data without the sequence.
void set_sequence_behind(const TestDatabase& db) {
  db.run("alter table txinbox_outbox_message alter column seq restart with 1");
}

TEST_CASE("a sequence behind its rows loses no message, and no message counts as failed" *
          doctest::skip(!on_postgresql())) {
  EffectDatabase db;
  add(db, "", {"1", "2", "3", "4", "5", "6"});
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 1}, .max_attempts = 1});
  const auto deliver = [&](const std::string& key, const std::string& id, std::size_t messages) {
    return thrown_by([&] {
      (void)consumer.consume({.business_key = key}, [&](soci::session& sql, Delivery& delivery) {
        add_effect(sql, delivery);
        Outbox::add(sql, std::vector<OutgoingMessage>(messages, {.topic = "t", .payload = key, .id = id}));
      });
    });
  };
  set_sequence_behind(db);
  CHECK(deliver("derived", "", 1) == "schema_mismatch");
  CHECK(deliver("several", "", 2) == "schema_mismatch");
  CHECK(deliver("given", other_id, 1) == "schema_mismatch");
  CHECK(thrown_by([&] { add(db, "", {"7"}); }) == "schema_mismatch");
  CHECK(db.effects() == 0);
  CHECK(db.number("select count(*) from txinbox_failed_message") == 0);
  CHECK(db.number("select count(*) from txinbox_outbox_message") == 6);
  // A duplicate of an id that the caller gave is still an error about the id.
  db.run("select setval(pg_get_serial_sequence('txinbox_outbox_message', 'seq'), 100)");
  CHECK(deliver("given", other_id, 1) == "nothing");
  CHECK(deliver("again", other_id, 1) == "nothing");  // the message is parked
  CHECK(db.effects() == 1);
  CHECK(db.claim_of("again") == "parked");
}

TEST_CASE("doctor warns of a sequence that is behind, and of one whose numbers do not follow the commits" *
          doctest::skip(!on_postgresql())) {
  const TestDatabase db;
  add(db, "", {"1", "2", "3"});
  const auto found = [&] { return diagnose(db.pool(1).acquire()); };
  CHECK(found().empty());
  set_sequence_behind(db);
  auto findings = found();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::warning);
  CHECK(findings[0].subject == "outbox");
  db.run(findings[0].remedy);  // it is the statement that mends it
  CHECK(found().empty());
  add(db, "", {"4"});

  db.run("alter table txinbox_outbox_message alter column seq set cache 20");
  findings = found();
  REQUIRE(findings.size() == 1);
  db.run(findings[0].remedy);
  CHECK(found().empty());
}

TEST_CASE("a message with a key is not read by the number of a message without a key") {
  const TestDatabase db;
  add(db, "", {"old"});
  const std::vector<std::int64_t> numbers = {db.number("select max(seq) from txinbox_outbox_message")};
  const std::set<int> parts = all_outbox_parts();
  const auto sql = db.session();
  const auto read = [&] {
    const auto dialect = backend::database_of(*sql).dialect("");
    const detail::OutboxQuery query{.parts = parts, .rows = numbers, .limit = 10};
    return backend::query(*backend::connection_of(*sql),
                          detail::select_outbox_rows(*dialect, backend::outbox_message_table, query), 9);
  };
  CHECK(read().size() == 1);
  give_number_again(db, "new");
  CHECK(read().empty());
}

}  // namespace
}  // namespace txinbox::test
