// The records of the changes that operators make.

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/operations.hpp>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/sql_time.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

const OperatorAction ann{.actor = "ann", .reason = "it's repaired: 100 %"};

std::vector<AuditRecord> audit(const TestDatabase& db, const AuditFilter& filter = {}) {
  return list_audit(*db.session(), filter);
}

AuditRecord only_record(const TestDatabase& db) {
  const auto records = audit(db);
  REQUIRE(records.size() == 1);
  return records.front();
}

/// Parks these keys of the consumer "svc".
void park(const TestDatabase& db, const std::vector<std::string>& keys) {
  auto pool = open_pool(db.url());
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  for (const std::string& key : keys) {
    CHECK(
        consumer.consume({.business_key = key}, [](soci::session&) { throw std::runtime_error("no stock"); }).outcome ==
        Outcome::parked);
  }
}

Outcome deliver(const TestDatabase& db, const std::string& key) {
  auto pool = open_pool(db.url());
  TxConsumer consumer(pool, "svc");
  return consumer.consume({.business_key = key}, [](soci::session&) {}).outcome;
}

TEST_CASE("a retry by an operator is recorded with its message") {
  const TestDatabase db;
  park(db, {"a\xc3\xa4'", "b"});
  CHECK(retry_failed(*db.session(), {.consumer = "svc", .business_key = "a\xc3\xa4'"}, ann) == 1);
  const AuditRecord found = only_record(db);
  CHECK(found.id > 0);
  CHECK(found.actor == "ann");
  CHECK(found.action == "retry");
  CHECK(found.consumer == "svc");
  CHECK(found.business_key == "a\xc3\xa4'");
  CHECK(found.messages == 1);
  CHECK(found.reason == ann.reason);
  REQUIRE(found.at);
  const auto age = std::chrono::system_clock::now() - *found.at;
  CHECK(age > -60s);
  CHECK(age < 60s);
  CHECK(deliver(db, "a\xc3\xa4'") == Outcome::consumed);
  CHECK(deliver(db, "b") == Outcome::parked);
}

TEST_CASE("a change that changes nothing, and a change without an operator, are not recorded") {
  const TestDatabase db;
  park(db, {"a"});
  CHECK(retry_failed(*db.session(), {.consumer = "svc"}) == 1);
  CHECK(discard_failed(*db.session(), {.consumer = "svc", .business_key = "b"}, ann) == 0);
  CHECK(retry_failed(*db.session(), {.consumer = "another"}, ann) == 0);
  CHECK_FALSE(forget(*db.session(), "svc", "a", ann));
  CHECK(audit(db).empty());
}

TEST_CASE("each changed message has a record of its own, the latest first") {
  const TestDatabase db;
  park(db, {"a", "b", "c"});
  CHECK(retry_failed(*db.session(), {.consumer = "svc", .business_key = "a"}, ann) == 1);
  CHECK(discard_failed(*db.session(), {.consumer = "svc", .state = FailedState::parked}, OperatorAction{"bob"}) == 2);
  CHECK(forget(*db.session(), "svc", "b", ann));
  const auto all = audit(db);
  REQUIRE(all.size() == 4);
  CHECK(all[0].action == "forget");
  CHECK(all[0].business_key == "b");
  CHECK(all[3].action == "retry");
  CHECK(all[0].id > all[1].id);
  CHECK(all[1].id > all[2].id);
  CHECK(audit(db, {.actor = "bob"}).size() == 2);
  CHECK(audit(db, {.actor = "bob"})[0].reason.empty());
  CHECK(audit(db, {.business_key = "b"}).size() == 2);
  CHECK(audit(db, {.action = "discard"}).size() == 2);
  CHECK(audit(db, {.consumer = "another"}).empty());
  CHECK(audit(db, {.newer_than = 1h}).size() == 4);
  CHECK(audit(db, {.newer_than = std::chrono::seconds::max()}).size() == 4);
  CHECK(audit(db, {.limit = 1}).size() == 1);
  CHECK(audit(db, {.limit = 0}).empty());
  CHECK(deliver(db, "a") == Outcome::consumed);
  CHECK(deliver(db, "b") == Outcome::consumed);
  CHECK(deliver(db, "c") == Outcome::discarded);
}

TEST_CASE("the record and the change are in one transaction") {
  const TestDatabase db;
  park(db, {"a"});
  CHECK(deliver(db, "consumed") == Outcome::consumed);
  db.run("drop table txinbox_audit");
  // The column for the reason is missing, so the record cannot be written.
  db.run(on_sqlite3() ? "create table txinbox_audit (id integer primary key, at text, actor text, action text, "
                        "consumer text, business_key text, messages integer)"
                      : "create table txinbox_audit (id bigint primary key, at char(40), actor char(40), action "
                        "char(40), consumer char(40), business_key char(40), messages bigint)");
  CHECK_THROWS_AS(retry_failed(*db.session(), {.consumer = "svc"}, ann), soci::soci_error);
  CHECK_THROWS_AS(discard_failed(*db.session(), {.consumer = "svc"}, ann), soci::soci_error);
  CHECK_THROWS_AS(forget(*db.session(), "svc", "consumed", ann), soci::soci_error);
  CHECK_THROWS_AS(purge(*db.session(), 1h, {.by = ann}), soci::soci_error);
  CHECK(list_failed(*db.session(), {.state = FailedState::parked}).size() == 1);
  CHECK(list_failed(*db.session()).front().attempts == 1);
  CHECK(deliver(db, "consumed") == Outcome::already_consumed);
}

TEST_CASE("without the tables of V3, a change by an operator says what to do and changes nothing") {
  const TestDatabase db;
  park(db, {"a"});
  db.run("drop table txinbox_audit");
  const auto check_missing = [](const auto& change) {
    try {
      change();
      FAIL("it did not throw");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::schema_missing);
      CHECK(std::string(error.what()).find("txinbox_audit") != std::string::npos);
    }
  };
  check_missing([&] { retry_failed(*db.session(), {.consumer = "svc"}, ann); });
  check_missing([&] { discard_failed(*db.session(), {.consumer = "svc"}, ann); });
  check_missing([&] { forget(*db.session(), "svc", "a", ann); });
  check_missing([&] { purge(*db.session(), 1h, {.by = ann}); });
  check_missing([&] { audit(db); });
  CHECK(list_failed(*db.session()).front().attempts == 1);
  CHECK(retry_failed(*db.session(), {.consumer = "svc"}) == 1);
}

TEST_CASE("the audit does not need the table of pauses") {
  const TestDatabase db;
  park(db, {"a"});
  db.run("drop table txinbox_pause");
  CHECK(retry_failed(*db.session(), {.consumer = "svc"}, ann) == 1);
  CHECK(audit(db).size() == 1);
}

TEST_CASE("an operator's name and reason must fit into the table") {
  const TestDatabase db;
  park(db, {"a"});
  for (const OperatorAction& bad :
       {OperatorAction{}, OperatorAction{std::string(256, 'a')}, OperatorAction{"a", std::string(1001, 'r')},
        OperatorAction{"a\xff"}, OperatorAction{"a", std::string("b\0c", 3)}}) {
    for (const auto& change : std::vector<std::function<void()>>{
             [&] { retry_failed(*db.session(), {.consumer = "svc"}, bad); },
             [&] { forget(*db.session(), "svc", "a", bad); }, [&] { purge(*db.session(), 1h, {.by = bad}); }}) {
      try {
        change();
        FAIL("it did not throw");
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::invalid_argument);
      }
    }
  }
  CHECK(audit(db).empty());
}

TEST_CASE("a change of a message in the outbox is recorded with its id") {
  const TestDatabase db;
  const std::string parked = Outbox::add(*db.session(), {.topic = "stock", .key = "a", .payload = "1"});
  const std::string failing = Outbox::add(*db.session(), {.topic = "stock", .key = "b", .payload = "2"});
  db.run("update txinbox_outbox_message set attempts = 3, parked_at = created_at where aggregateid = 'a'");
  db.run("update txinbox_outbox_message set attempts = 1 where aggregateid = 'b'");
  CHECK(retry_outbox(*db.session(), {.id = parked}, ann) == 1);
  CHECK(retry_outbox(*db.session(), {.id = parked}, ann) == 0);
  CHECK(discard_outbox(*db.session(), {}, OperatorAction{"bob"}) == 1);
  const auto all = audit(db);
  REQUIRE(all.size() == 2);
  CHECK(all[0].action == "outbox_discard");
  CHECK(all[0].actor == "bob");
  CHECK(all[0].business_key == failing);
  CHECK(all[1].action == "outbox_retry");
  CHECK(all[1].business_key == parked);
  CHECK(all[1].messages == 1);
  CHECK(all[1].consumer.empty());
}

TEST_CASE("a purge has a record before its first batch, and one with its rows") {
  const TestDatabase db;
  for (const char* key : {"a", "b", "c"}) CHECK(deliver(db, key) == Outcome::consumed);
  db.run("update txinbox_consumed_message set consumed_at = " + sql_time(-2h));
  CHECK(purge(*db.session(), 1h, {.dry_run = true, .by = ann}) == 3);
  CHECK(audit(db).empty());
  CHECK(purge(*db.session(), 1h, {.by = ann, .consumer = "svc"}) == 3);
  CHECK(purge(*db.session(), 1h, {.what = Purgeable::failed, .by = ann}) == 0);
  CHECK(purge(*db.session(), 1h, {.what = Purgeable::conflicts, .by = ann}) == 0);
  const auto all = audit(db);
  REQUIRE(all.size() == 6);
  CHECK(all[0].action == "purge_conflicts");
  CHECK(all[2].action == "purge_failed");
  CHECK(all[3].action == "purge_failed_begin");
  CHECK(all[3].consumer.empty());
  CHECK(all[4].action == "purge_consumed");
  CHECK(all[4].messages == 3);
  CHECK(all[4].consumer == "svc");
  CHECK(all[5].action == "purge_consumed_begin");
  CHECK(all[5].messages == 0);
  CHECK(all[5].actor == "ann");
}

}  // namespace
}  // namespace txinbox::test
