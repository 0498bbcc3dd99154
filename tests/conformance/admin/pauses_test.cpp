// Pausing and resuming consumers, and the audit of both.

#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/finding.hpp>
#include <txinbox/operations.hpp>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/memory_broker.hpp"
#include "support/run_kit.hpp"
#include "support/schema_tools.hpp"
#include "support/sql_time.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> names_of(const std::vector<ConsumerPause>& pauses) {
  std::vector<std::string> names;
  names.reserve(pauses.size());
  for (const ConsumerPause& each : pauses) names.push_back(each.consumer);
  return names;
}

std::vector<std::string> paused(const TestDatabase& db) { return names_of(list_pauses(*db.session())); }

ConsumerPause only_pause(const TestDatabase& db) {
  const auto pauses = list_pauses(*db.session());
  REQUIRE(pauses.size() == 1);
  return pauses.front();
}

long long audits(const TestDatabase& db, const std::string& condition = "1 = 1") {
  return db.number("select count(*) from txinbox_audit where " + condition);
}

using Names = std::vector<std::string>;

/// The time between two times, with room for the time that the statement needs.
bool is_about(const ConsumerPause& pause, std::chrono::seconds duration) {
  REQUIRE(pause.paused_at);
  REQUIRE(pause.resumes_at);
  const auto found = *pause.resumes_at - *pause.paused_at;
  return found > duration - 2s && found < duration + 2s;
}

TEST_CASE("a paused consumer is listed until it is resumed, with who has paused it and why") {
  const TestDatabase db;
  CHECK(paused(db).empty());
  pause_consumer(*db.session(), "svc", {.actor = "ann", .reason = "the stock's data is wrong: 100 % of it"});
  const ConsumerPause found = only_pause(db);
  CHECK(found.consumer == "svc");
  CHECK(found.actor == "ann");
  CHECK(found.reason == "the stock's data is wrong: 100 % of it");
  REQUIRE(found.paused_at);
  const auto age = std::chrono::system_clock::now() - *found.paused_at;
  CHECK(age > -60s);
  CHECK(age < 60s);
  CHECK_FALSE(found.resumes_at);
  CHECK_FALSE(resume_consumer(*db.session(), "SVC", {.actor = "bob"}));
  CHECK(resume_consumer(*db.session(), "svc", {.actor = "bob"}));
  CHECK(paused(db).empty());
  CHECK_FALSE(resume_consumer(*db.session(), "svc", {.actor = "bob"}));
}

TEST_CASE("pausing again replaces the time, the reason and the actor") {
  const TestDatabase db;
  pause_consumer(*db.session(), "svc", {.actor = "ann", .reason = "first"}, 1h);
  db.run("update txinbox_pause set paused_at = " + sql_time(-1h));
  CHECK_FALSE(is_about(only_pause(db), 1h));
  pause_consumer(*db.session(), "svc", {.actor = "bob", .reason = "second"}, 2h);
  const ConsumerPause again = only_pause(db);
  CHECK(again.actor == "bob");
  CHECK(again.reason == "second");
  CHECK(is_about(again, 2h));
  pause_consumer(*db.session(), "svc", {.actor = "bob", .reason = "third"});
  CHECK_FALSE(only_pause(db).resumes_at);
  CHECK(audits(db) == 3);
}

TEST_CASE("a pause ends by itself at its time") {
  const TestDatabase db;
  for (const char* consumer : {"b", "a", "c"}) {
    pause_consumer(*db.session(), consumer, {.actor = "ann", .reason = "r"}, 1h);
  }
  CHECK(paused(db) == Names{"a", "b", "c"});
  db.run("update txinbox_pause set resumes_at = " + sql_time(-1s) + " where consumer = 'b'");
  CHECK(paused(db) == Names{"a", "c"});
  CHECK_FALSE(resume_consumer(*db.session(), "b", {.actor = "ann"}));
  pause_consumer(*db.session(), "b", {.actor = "ann", .reason = "again"}, 100 * 365 * 24h);
  CHECK(paused(db) == Names{"a", "b", "c"});
}

TEST_CASE("each change of a pause has a row in the audit, and a change of nothing has none") {
  const TestDatabase db;
  pause_consumer(*db.session(), "svc", {.actor = "ann", .reason = "broken"}, 1h);
  CHECK(resume_consumer(*db.session(), "svc", {.actor = "bob"}));
  CHECK_FALSE(resume_consumer(*db.session(), "svc", {.actor = "eve"}));
  CHECK(audits(db) == 2);
  CHECK(audits(db,
               "actor = 'ann' and action = 'pause' and consumer = 'svc' and business_key is null and messages = 1 and "
               "reason = 'broken' and at > " +
                   sql_time(-60s)) == 1);
  CHECK(audits(db,
               "actor = 'bob' and action = 'resume' and consumer = 'svc' and business_key is null and messages = 1 "
               "and reason is null and at < " +
                   sql_time(60s)) == 1);
  CHECK(db.number("select max(id) - min(id) from txinbox_audit") > 0);
}

TEST_CASE("without its row in the audit, a pause is not changed") {
  const TestDatabase db;
  pause_consumer(*db.session(), "kept", {.actor = "ann", .reason = "r"});
  // The audit refuses every row from now on.
  if (on_sqlite3()) {
    db.run("create trigger refuse before insert on txinbox_audit begin select raise(abort, 'refused'); end");
  } else {
    db.run("alter table txinbox_audit add constraint refuse check (actor <> 'bob')");
  }
  const auto sql = db.session();
  CHECK_THROWS_AS(pause_consumer(*sql, "svc", {.actor = "bob", .reason = "r"}), soci::soci_error);
  CHECK_THROWS_AS((void)resume_consumer(*sql, "kept", {.actor = "bob"}), soci::soci_error);
  CHECK(names_of(list_pauses(*sql)) == Names{"kept"});
  CHECK(audits(db) == 1);
}

TEST_CASE("names, actors and reasons that cannot be kept are refused, and nothing is changed") {
  const TestDatabase db;
  const auto code = [&](std::string_view consumer, const OperatorAction& by,
                        std::optional<std::chrono::seconds> duration = {}) {
    try {
      pause_consumer(*db.session(), consumer, by, duration);
    } catch (const Error& error) {
      return error.code();
    }
    FAIL("nothing was thrown");
    return ErrorCode{};
  };
  const OperatorAction good{.actor = "ann", .reason = "r"};
  CHECK(code("", good) == ErrorCode::invalid_key);
  CHECK(code(std::string(65, 'c'), good) == ErrorCode::invalid_key);
  CHECK(code("svc", {.actor = "", .reason = "r"}) == ErrorCode::invalid_argument);
  CHECK(code("svc", {.actor = std::string(256, 'a'), .reason = "r"}) == ErrorCode::invalid_argument);
  CHECK(code("svc", {.actor = "\xff", .reason = "r"}) == ErrorCode::invalid_argument);
  CHECK(code("svc", {.actor = "ann"}) == ErrorCode::invalid_argument);
  CHECK(code("svc", {.actor = "ann", .reason = std::string(1001, 'r')}) == ErrorCode::invalid_argument);
  CHECK(code("svc", {.actor = "ann", .reason = std::string(1, '\0')}) == ErrorCode::invalid_argument);
  CHECK(code("svc", good, 0s) == ErrorCode::invalid_argument);
  CHECK(code("svc", good, std::chrono::years(101)) == ErrorCode::invalid_argument);
  CHECK(paused(db).empty());
  CHECK(audits(db) == 0);
  const OperatorAction longest{.actor = std::string(255, 'a'), .reason = std::string(1000, 'r')};
  pause_consumer(*db.session(), std::string(64, 'c'), longest, 1s);
  CHECK(audits(db, "messages = 1") == 1);
}

TEST_CASE("a pause inside of an open transaction is refused") {
  const TestDatabase db;
  const auto sql = db.session();
  sql->begin();
  for (const auto& change : {+[](soci::session& s) { pause_consumer(s, "svc", {.actor = "ann", .reason = "r"}); },
                             +[](soci::session& s) { (void)resume_consumer(s, "svc", {.actor = "ann"}); }}) {
    try {
      change(*sql);
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::transaction_open);
    }
  }
  sql->rollback();
  CHECK(audits(db) == 0);
}

TEST_CASE("before the migration V3, consumers work, and a pause says what to do") {
  const TestDatabase db(TestDatabase::Tables::none);
  const auto files = migration_files();
  REQUIRE(files.size() >= 3);
  for (std::size_t i = 0; i < 2; ++i) run_statements(db, text_of(files[i]));
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume({.business_key = "1"}, [](soci::session&, Delivery&) {}).outcome == Outcome::consumed);
  CHECK_FALSE(refusal_by_verify(db));
  const auto findings = findings_about(*db.session(), "txinbox_schema");
  REQUIRE(findings.size() == 1);
  CHECK(findings.front().severity == Severity::warning);
  CHECK(findings.front().remedy.find("V3__operations.sql") != std::string::npos);
  CHECK(findings_about(*db.session(), "txinbox_pause").empty());

  for (const auto& call : {+[](soci::session& s) { pause_consumer(s, "svc", {.actor = "ann", .reason = "r"}); },
                           +[](soci::session& s) { (void)resume_consumer(s, "svc", {.actor = "ann"}); },
                           +[](soci::session& s) { (void)list_pauses(s); }}) {
    try {
      call(*db.session());
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::schema_missing);
      CHECK(std::string(error.what()).find("txinbox migrate") != std::string::npos);
    }
  }

  const auto applied = migrate(*db.session());
  REQUIRE(applied.size() == files.size() - 2);
  CHECK(applied.front().name == "operations");
  CHECK(findings_about(*db.session(), "txinbox_schema").empty());
  pause_consumer(*db.session(), "svc", {.actor = "ann", .reason = "r"});
  CHECK(paused(db) == Names{"svc"});
}

// On MySQL, a query on a session with autocommit off begins a transaction. A delivery would refuse that session.
TEST_CASE("run asks for a pause on the service's own session, and leaves no transaction open") {
  const EffectDatabase db;
  const auto own = db.session();
  const bool without_autocommit = has_autocommit_setting();
  if (without_autocommit) *own << "set autocommit = 0";
  MemoryBroker broker(0);
  for (const char* key : {"a", "b"}) broker.publish(key);
  MemorySource source(broker);
  int expected = 0;
  SUBCASE("it is paused") {
    pause_consumer(*db.session(), "svc", {.actor = "ann", .reason = "r"}, 1s);
    expected = 1;
  }
  SUBCASE("there is no table of pauses") { db.run("drop table txinbox_pause"); }
  int pauses = 0;
  const auto listener = on_event([&](const RunEvent& event) {
    if (event.type == RunEventType::paused) ++pauses;
  });
  TxConsumer consumer(*own, "svc", {.listeners = {listener}});
  CHECK(run(source, consumer, body_is_key, add_effect, until_idle()).consumed == 2);
  CHECK(pauses == expected);
  CHECK(db.effects() == 2);
}

}  // namespace
}  // namespace txinbox::test
