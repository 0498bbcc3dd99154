// Tests the tables of least privileges in docs/operations/migrations.md, with users that have only these privileges.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/finding.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/operations.hpp>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/eventually.hpp"
#include "support/memory_broker.hpp"
#include "support/old_rows.hpp"
#include "support/recording_publisher.hpp"
#include "support/run_kit.hpp"
#include "support/schema_tools.hpp"
#include "support/test_user.hpp"

namespace txinbox::test {
namespace {

void grant_migration(const User& user, const TestDatabase& db) {
  const std::string schema = schema_of(db);
  if (on_postgresql()) {
    user.grant("usage, create on schema " + schema);
  } else {
    user.grant("create, alter, index, select, insert, update on " + schema + ".*");
    if (has_procedures()) user.grant("create routine on " + schema + ".*");
  }
}

const auto nothing = [](soci::session&, Delivery&) {};

/// Checks that `work` returns true with these privileges, and throws without one of them.
template <class Work>
void check_needs_each(const User& user, const std::vector<std::string>& privileges, const Work& work) {
  for (const std::string& privilege : privileges) user.grant(privilege);
  CHECK(work());
  for (const std::string& privilege : privileges) {
    CAPTURE(privilege);
    user.revoke(privilege);
    CHECK_THROWS((void)work());
    user.grant(privilege);
  }
  CHECK(work());
}

TEST_CASE("the documented privileges are enough for the service" * doctest::skip(!has_users())) {
  const TestDatabase db;
  const User user(db);
  grant_service(user, db);
  Pool pool = user.pool();
  verify(pool.acquire());
  TxConsumer consumer(pool, "svc");
  const auto storing = [](soci::session&, Delivery& delivery) { delivery.store("result"); };
  CHECK(consumer.consume({.business_key = "1"}, storing).outcome == Outcome::consumed);
  CHECK(consumer.consume({.business_key = "1"}, storing).stored == "result");
  CHECK(inbox_status(pool.acquire()).rows == 1);
  CHECK(find_message(pool.acquire(), "svc", "1").has_value());
  for (const Finding& finding : diagnose(pool.acquire()))
    CHECK_MESSAGE(finding.severity != Severity::error, finding.found);

  // txinbox looks for a claim that a handler has committed with an UPDATE.
  CHECK_THROWS_AS((void)consumer.consume({.business_key = "2"}, [](soci::session& sql, Delivery&) { sql.commit(); }),
                  Error);
  CHECK(consumer.consume({.business_key = "2"}, nothing).outcome ==
        (pool_refuses_foreign_commit() ? Outcome::consumed : Outcome::parked));

  CHECK_THROWS_AS(forget(pool.acquire(), "svc", "1"), soci::soci_error);
  user.grant("delete on " + schema_of(db) + ".txinbox_consumed_message");
  CHECK(forget(pool.acquire(), "svc", "1"));
}

TEST_CASE("the service needs each of its documented privileges" * doctest::skip(!has_users())) {
  const TestDatabase db;
  const std::string consumed = " on " + schema_of(db) + ".txinbox_consumed_message";
  for (const std::string& privilege : {"select" + consumed, "insert" + consumed, "update" + consumed,
                                       "select on " + schema_of(db) + ".txinbox_schema"}) {
    CAPTURE(privilege);
    const User user(db);
    grant_service(user, db);
    user.revoke(privilege);
    Pool pool = user.pool();
    TxConsumer consumer(pool, "svc");
    CHECK_THROWS(
        (void)consumer.consume({.business_key = "1"}, [](soci::session&, Delivery& delivery) { delivery.store("r"); }));
    CHECK(db.number("select count(*) from txinbox_consumed_message") == 0);
  }
}

TEST_CASE("a purge needs only DELETE in addition to the service's privileges" * doctest::skip(!has_users())) {
  const std::chrono::hours old(24);
  const OldRows db;
  db.add("svc", 2, std::chrono::hours(25));
  db.add_failed("svc", 2, std::chrono::hours(25));
  db.add_conflicts("svc", 2, std::chrono::hours(25));
  const User user(db);
  grant_service(user, db);
  Pool pool = user.pool();
  CHECK_THROWS_AS(purge(pool.acquire(), old), soci::soci_error);
  CHECK_THROWS_AS(purge(pool.acquire(), old, {.what = Purgeable::conflicts}), soci::soci_error);
  CHECK(db.claims() == 2);
  CHECK(purge(pool.acquire(), old, {.what = Purgeable::failed}) ==
        2);  // the service itself has DELETE on failed messages
  user.grant("delete on " + schema_of(db) + ".txinbox_consumed_message");
  user.grant("delete on " + schema_of(db) + ".txinbox_conflicting_message");
  CHECK(purge(pool.acquire(), old) == 2);
  CHECK(purge(pool.acquire(), old, {.what = Purgeable::conflicts}) == 2);
}

TEST_CASE("the documented privileges are enough for the migration, and the service can use its tables" *
          doctest::skip(!has_users())) {
  const TestDatabase db(TestDatabase::Tables::none);
  const User owner(db);
  grant_migration(owner, db);
  migrate(owner.pool().acquire());
  migrate(owner.pool().acquire());
  const User service(db);
  grant_service(service, db);
  Pool pool = service.pool();
  CHECK(TxConsumer(pool, "svc").consume({.business_key = "1"}, nothing).outcome == Outcome::consumed);
}

TEST_CASE("the record of a change needs INSERT on the audit's table, and its list SELECT" *
          doctest::skip(!has_users())) {
  const TestDatabase db;
  const User user(db);
  grant_service(user, db);
  user.grant("delete on " + schema_of(db) + ".txinbox_consumed_message");
  Pool pool = user.pool();
  CHECK(TxConsumer(pool, "svc").consume({.business_key = "1"}, nothing).outcome == Outcome::consumed);
  CHECK_THROWS((void)forget(pool.acquire(), "svc", "1", OperatorAction{"ann"}));
  user.grant("insert on " + schema_of(db) + ".txinbox_audit");
  CHECK(forget(pool.acquire(), "svc", "1", OperatorAction{"ann"}));
  CHECK_THROWS((void)list_audit(pool.acquire()));
  user.grant("select on " + schema_of(db) + ".txinbox_audit");
  CHECK(list_audit(pool.acquire()).size() == 1);
}

TEST_CASE("the documented privileges are enough to erase a message, and are necessary" * doctest::skip(!has_users())) {
  const TestDatabase db;
  const std::string schema = schema_of(db);
  const std::vector<std::string> privileges{
      "delete on " + schema + ".txinbox_consumed_message", "delete on " + schema + ".txinbox_conflicting_message",
      "insert on " + schema + ".txinbox_audit", "update on " + schema + ".txinbox_audit",
      "select on " + schema + ".txinbox_audit"};
  const User user(db);
  grant_service(user, db);
  Pool pool = user.pool();
  TxConsumer consumer(pool, "svc");
  int number = 0;
  check_needs_each(user, privileges, [&] {
    const std::string key = std::to_string(++number);
    CHECK(consumer.consume({.business_key = key}, nothing).outcome == Outcome::consumed);
    return erase(pool.acquire(), "svc", std::vector{key}, OperatorAction{"ann"}, {.no_consumer_runs = true}).at(0) ==
           EraseOutcome::erased;
  });
}

TEST_CASE("the documented privileges are enough to pause and resume a consumer, and are necessary" *
          doctest::skip(!has_users())) {
  const TestDatabase db;
  const std::string schema = schema_of(db);
  const std::vector<std::string> privileges{
      "select on " + schema + ".txinbox_pause", "insert on " + schema + ".txinbox_pause",
      "update on " + schema + ".txinbox_pause", "delete on " + schema + ".txinbox_pause",
      "insert on " + schema + ".txinbox_audit"};
  const User user(db);
  grant_service(user, db);
  check_needs_each(user, privileges, [&] {
    Pool pool = user.pool();
    const auto connection = pool.acquire();
    pause_consumer(connection, "svc", {.actor = "ann", .reason = "r"});
    pause_consumer(connection, "svc", {.actor = "ann", .reason = "again"}, std::chrono::hours(1));
    return list_pauses(connection).size() == 1 && resume_consumer(connection, "svc", {.actor = "ann"});
  });
}

TEST_CASE("run obeys a pause if its user may read the table, and goes on otherwise" * doctest::skip(!has_users())) {
  const TestDatabase db;
  const User user(db);
  grant_service(user, db);
  {
    Pool admin = db.pool(1);
    pause_consumer(admin.acquire().session(), "svc", {.actor = "ann", .reason = "r"}, std::chrono::hours(1));
  }
  const auto consumed = [&] {
    Pool pool = user.pool();
    MemoryBroker broker(0);
    broker.publish("a");
    MemorySource source(broker);
    std::stop_source stop;
    const auto listener = on_event([&](const RunEvent& event) {
      if (event.type == RunEventType::paused) stop.request_stop();
    });
    TxConsumer consumer(pool, "svc", {.stop = stop.get_token(), .listeners = {listener}});
    return run(source, consumer, body_is_key, nothing, until_idle()).consumed;
  };
  // MariaDB and MySQL hide the table from this user. So it counts as missing there.
  const auto doctor_warns = [&] {
    return std::ranges::any_of(diagnose(user.pool().acquire()), [](const Finding& finding) {
      return finding.subject == (on_mysql() ? "txinbox_pause" : "pauses");
    });
  };
  CHECK(consumed() == 1);
  CHECK(doctor_warns());
  user.grant("select on " + schema_of(db) + ".txinbox_pause");
  CHECK(consumed() == 0);
  CHECK_FALSE(doctor_warns());
}

TEST_CASE("the documented privileges are enough for the outbox and the relay, and are necessary" *
          doctest::skip(!has_users())) {
  const TestDatabase db;
  const std::string schema = schema_of(db);
  const auto add = [](soci::session& sql, Delivery&) { Outbox::add(sql, {.topic = "t", .key = "k", .payload = "p"}); };

  const User service(db);
  grant_service(service, db);
  {
    Pool pool = service.pool();
    TxConsumer consumer(pool, "svc");
    CHECK(consumer.consume({.business_key = "0"}, nothing).outcome == Outcome::consumed);
    CHECK_THROWS((void)consumer.consume({.business_key = "1"}, add));
    service.grant("select, insert, update on " + schema + ".txinbox_outbox_message");
    service.grant("select on " + schema + ".txinbox_outbox_database");
    CHECK(consumer.consume({.business_key = "1"}, add).outcome == Outcome::consumed);
  }
  CHECK(db.number("select count(*) from txinbox_outbox_message") == 1);

  const User relay(db);
  grant_service(relay, db);
  relay.grant("select, update, delete on " + schema + ".txinbox_outbox_message");
  relay.grant("select, insert, update, delete on " + schema + ".txinbox_outbox_relay");
  relay.grant("select, update on " + schema + ".txinbox_outbox_part");
  Pool pool = relay.pool();
  RecordingPublisher broker;
  std::atomic<int> errors = 0;
  const RelayOptions options{.poll = std::chrono::milliseconds(5),
                             .initial_backoff = std::chrono::milliseconds(5),
                             .listeners = {on_event([&](const RelayEvent& event) {
                               if (event.type == RelayEventType::error) ++errors;
                             })}};
  const std::vector<std::string> published{"p"};
  {
    const OutboxRelay running(pool, broker.publisher([&](const OutgoingMessage&) {
      return broker.tries("p") == 0 ? PublishResult{PublishStatus::failed, "once"} : PublishResult{};
    }),
                              options);
    CHECK(broker.payloads(1) == published);
    CHECK(eventually([&] { return db.number("select count(*) from txinbox_outbox_message") == 0; }));
  }
  CHECK(errors == 0);

  for (const std::string& privilege :
       {"delete on " + schema + ".txinbox_outbox_message", "delete on " + schema + ".txinbox_outbox_relay",
        "update on " + schema + ".txinbox_outbox_part"}) {
    CAPTURE(privilege);
    relay.revoke(privilege);
    Outbox::add(*db.session(), {.topic = "t"});
    errors = 0;
    {
      const OutboxRelay refused(pool, broker.publisher(), options);
      CHECK(eventually([&] { return errors > 0; }));
    }
    relay.grant(privilege);
    db.run("delete from txinbox_outbox_message");
    db.run("delete from txinbox_outbox_relay");
  }
}

TEST_CASE("the documented privileges are enough for leases, for failed messages and for the outbox's messages" *
          doctest::skip(!has_users())) {
  const TestDatabase db;
  const std::string schema = schema_of(db);
  const User user(db);
  grant_service(user, db);
  Pool pool = user.pool();
  LeaseConsumer leases(pool, "svc", {}, {.max_attempts = 1});
  CHECK(leases.consume({.business_key = "lease"}, [](Lease& lease) { lease.renew(); }).outcome == Outcome::consumed);
  const auto fail = [](Lease&) { throw std::runtime_error("fails"); };
  for (const char* key : {"1", "2"}) CHECK(leases.consume({.business_key = key}, fail).outcome == Outcome::parked);
  CHECK(list_failed(pool.acquire()).size() == 2);
  CHECK(list_leases(pool.acquire()).empty());
  CHECK(discard_failed(pool.acquire(), {.business_key = "1"}) == 1);
  CHECK(leases.consume({.business_key = "1"}, fail).outcome == Outcome::discarded);
  CHECK_THROWS(retry_failed(pool.acquire(), {.business_key = "2"}));
  user.grant("delete on " + schema + ".txinbox_consumed_message");
  CHECK(retry_failed(pool.acquire(), {.business_key = "2"}) == 1);
  CHECK(leases.consume({.business_key = "2"}, [](Lease&) {}).outcome == Outcome::consumed);

  for (int i = 0; i < 2; ++i) Outbox::add(*db.session(), {.topic = "t", .key = "k"});
  db.run("update txinbox_outbox_message set attempts = 1, parked_at = " +
         std::string(on_mysql() ? "utc_timestamp" : "now()"));
  CHECK_THROWS(list_outbox(pool.acquire()));
  for (const char* table : {"message", "relay", "part"}) user.grant("select on " + schema + ".txinbox_outbox_" + table);
  const auto messages = list_outbox(pool.acquire());
  REQUIRE(messages.size() == 2);
  CHECK_THROWS(retry_outbox(pool.acquire(), {.id = messages[0].id}));
  CHECK_THROWS(discard_outbox(pool.acquire(), {.id = messages[1].id}));
  user.grant("update, delete on " + schema + ".txinbox_outbox_message");
  CHECK(retry_outbox(pool.acquire(), {.id = messages[0].id}) == 1);
  CHECK(discard_outbox(pool.acquire(), {.id = messages[1].id}) == 1);
}

}  // namespace
}  // namespace txinbox::test
