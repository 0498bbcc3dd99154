#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/operations.hpp>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

void consume(const TestDatabase& db, const std::string& consumer, const Message& message,
             const std::string& result = "") {
  Pool pool = db.pool(1);
  const auto outcome = TxConsumer(pool, consumer).consume(message, [&](soci::session&, Delivery& delivery) {
    if (!result.empty()) delivery.store(result);
  });
  REQUIRE(outcome.outcome == Outcome::consumed);
}

/// Whether the time is known, and less than an hour from this machine's clock. A time in a wrong zone is not.
bool is_about_now(const std::optional<DatabaseTime>& time) {
  return time && std::chrono::abs(std::chrono::system_clock::now() - *time) < std::chrono::hours(1);
}

template <typename F>
ErrorCode code_of(const F& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.code();
  }
  FAIL("nothing was thrown");
  return {};
}

TEST_CASE("find_message returns the row of exactly that key") {
  const TestDatabase db;
  const std::string key = "it's :a \"key\" \\ 鍵";
  consume(db, "svc", {.business_key = key, .message_id = "broker's :1"}, std::string("a\0\xff\n", 4));
  consume(db, "svc", {.business_key = key + " "});
  const auto sql = db.session();

  const auto found = find_message(*sql, "svc", key);
  REQUIRE(found);
  CHECK(found->consumer == "svc");
  CHECK(found->business_key == key);
  CHECK(found->message_id == "broker's :1");
  CHECK(found->state == "consumed");
  CHECK(is_about_now(found->consumed_at));
  CHECK(found->stored == std::string("a\0\xff\n", 4));

  const auto other = find_message(*sql, "svc", key + " ");
  REQUIRE(other);
  CHECK(other->message_id.empty());
  CHECK(!other->stored);
  CHECK(!find_message(*sql, "svc", "another"));
  CHECK(!find_message(*sql, "Svc", key));
}

TEST_CASE("the time of a row is UTC in a session of any time zone") {
  const TestDatabase db;
  consume(db, "svc", {.business_key = "k"});
  const auto sql = db.session();
  if (on_mysql()) *sql << "set time_zone = '+09:00'";
  if (on_postgresql()) *sql << "set timezone = 'Asia/Tokyo'";
  const auto found = find_message(*sql, "svc", "k");
  REQUIRE(found);
  CHECK(is_about_now(found->consumed_at));
}

TEST_CASE("a lease is listed with its fence and its message while its handler runs, and not afterwards") {
  const TestDatabase db;
  Pool pool = db.pool(4);
  const auto sql = db.session();
  const auto handler = [&](Lease& lease) {
    const auto leases = list_leases(*sql);
    REQUIRE(leases.size() == 1);
    CHECK(leases[0].consumer == "svc");
    CHECK(leases[0].business_key == "k");
    CHECK(leases[0].message_id == "m1");
    CHECK(leases[0].fence == lease.fence());
    CHECK(leases[0].attempts == 1);
    CHECK(leases[0].owner.find(':') != std::string::npos);
    CHECK(is_about_now(leases[0].since));
    CHECK(is_about_now(leases[0].expires_at));
    CHECK(leases[0].remaining > std::chrono::milliseconds::zero());
    CHECK(leases[0].remaining <= std::chrono::seconds(60));
    CHECK(list_leases(*sql, {.consumer = "svc"}).size() == 1);
    CHECK(list_leases(*sql, {.consumer = "other"}).empty());
    CHECK(list_leases(*sql, {.limit = 0}).empty());
  };
  LeaseConsumer consumer(pool, "svc");
  CHECK(consumer.consume({.business_key = "k", .message_id = "m1"}, handler).outcome == Outcome::consumed);
  CHECK(list_leases(*sql).empty());
  CHECK_THROWS(
      (void)consumer.consume({.business_key = "k2"}, [](Lease&) { throw std::runtime_error("releases the lease"); }));
  CHECK(list_leases(*sql).empty());
}

TEST_CASE("conflicts are listed with both messages, the latest one first") {
  const TestDatabase db;
  const auto sql = db.session();
  CHECK(list_conflicts(*sql).empty());
  consume(db, "svc", {.business_key = "k", .message_id = "m1", .content = "a"});
  consume(db, "other", {.business_key = "k'", .content = "a"});
  const auto conflicts = [&](const char* name, const Message& message) {
    TxConsumer consumer(*sql, name);
    CHECK(consumer.consume(message, [](soci::session&, Delivery&) {}).outcome == Outcome::conflict);
  };
  conflicts("svc", {.business_key = "k", .message_id = "m2", .content = "b"});
  conflicts("svc", {.business_key = "k", .message_id = "m3", .content = "b"});
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // so that the last one has a later time
  conflicts("other", {.business_key = "k'", .content = "c"});
  const auto found = list_conflicts(*sql);
  REQUIRE(found.size() == 2);
  CHECK(found[0].consumer == "other");
  CHECK(found[0].business_key == "k'");
  CHECK(found[0].message_id.empty());
  CHECK(found[0].original_message_id.empty());
  CHECK(found[0].deliveries == 1);
  const ConflictingContent& latest = found[1];
  CHECK(latest.consumer == "svc");
  CHECK(latest.business_key == "k");
  CHECK(latest.message_id == "m3");
  CHECK(latest.original_message_id == "m1");
  CHECK(latest.content_hash == "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d");
  CHECK(latest.original_hash == "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb");
  CHECK(latest.state == "consumed");
  CHECK(latest.deliveries == 2);
  CHECK(is_about_now(latest.first_at));
  CHECK(is_about_now(latest.last_at));
  CHECK(latest.age < std::chrono::minutes(1));
  CHECK(list_conflicts(*sql, {.consumer = "svc"}).size() == 1);
  CHECK(list_conflicts(*sql, {.consumer = "nobody"}).empty());
  CHECK(list_conflicts(*sql, {.business_key = "k'"}).size() == 1);
  CHECK(list_conflicts(*sql, {.consumer = "svc", .business_key = "k'"}).empty());
  CHECK(list_conflicts(*sql, {.limit = 1}).size() == 1);
  CHECK(list_conflicts(*sql, {.limit = 0}).empty());
}

TEST_CASE("status counts by consumer and state") {
  const TestDatabase db;
  consume(db, "b", {.business_key = "1"});
  consume(db, "a", {.business_key = "1"});
  consume(db, "a", {.business_key = "2"});
  consume(db, "a", {.business_key = "3"});
  consume(db, "a", {.business_key = "4"});
  db.run("update txinbox_consumed_message set state = 'torn' where business_key = '3'");
  db.run("update txinbox_consumed_message set state = 'parked' where business_key = '4'");
  const InboxStatus found = inbox_status(*db.session());
  CHECK(found.database == database());
  CHECK(!found.server_version.empty());
  CHECK(found.schema_version == migrations(database()).back().version);
  CHECK(found.rows == 5);
  CHECK(found.bytes >= 0);
  if (!on_sqlite3()) CHECK(found.bytes > 0);
  REQUIRE(found.consumers.size() == 2);
  CHECK(found.consumers[0].consumer == "a");
  CHECK(found.consumers[0].consumed == 2);
  CHECK(found.consumers[0].consuming == 0);
  CHECK(found.consumers[0].parked == 2);
  CHECK(found.consumers[1].consumer == "b");
  CHECK(found.consumers[1].consumed == 1);
  for (const auto& consumer : found.consumers) {
    CHECK(is_about_now(consumer.oldest));
    CHECK(consumer.oldest <= consumer.newest);
  }
}

TEST_CASE("status of an empty table has no consumers") {
  const TestDatabase db;
  const InboxStatus found = inbox_status(*db.session());
  CHECK(found.rows == 0);
  CHECK(found.consumers.empty());
}

TEST_CASE("after forget, this key runs again, and no other key does") {
  const TestDatabase db;
  consume(db, "svc", {.business_key = "k"});
  consume(db, "svc", {.business_key = "K"});
  consume(db, "other", {.business_key = "k"});
  const auto sql = db.session();
  CHECK(forget(*sql, "svc", "k"));
  CHECK(!forget(*sql, "svc", "k"));
  CHECK(db.number("select count(*) from txinbox_consumed_message") == 2);
  consume(db, "svc", {.business_key = "k"});  // requires the outcome consumed
}

TEST_CASE("a key in any state can be forgotten") {
  const TestDatabase db;
  for (const std::string state : {"consumed", "consuming", "parked", "torn"}) {
    consume(db, "svc", {.business_key = "k"});
    db.run("update txinbox_consumed_message set state = '" + state + "'");
    CHECK(forget(db.pool(1).acquire(), "svc", "k"));
  }
}

TEST_CASE("forget commits on a session with autocommit off" * doctest::skip(!has_autocommit_setting())) {
  const TestDatabase db;
  consume(db, "svc", {.business_key = "k"});
  const auto sql = db.session();
  *sql << "set autocommit = 0";
  CHECK(forget(*sql, "svc", "k"));
  CHECK(db.number("select count(*) from txinbox_consumed_message") == 0);
  CHECK(!forget(*sql, "svc", "k"));  // the first call left no transaction open
}

TEST_CASE("forget refuses a session that is inside a transaction") {
  const TestDatabase db;
  consume(db, "svc", {.business_key = "k"});
  const auto sql = db.session();
  sql->begin();
  long long rows = 0;
  *sql << "select count(*) from txinbox_consumed_message", soci::into(rows);
  CHECK(code_of([&] { forget(*sql, "svc", "k"); }) == ErrorCode::transaction_open);
  sql->rollback();
  CHECK(db.number("select count(*) from txinbox_consumed_message") == 1);
}

TEST_CASE("status, find and forget report missing tables and invalid keys") {
  const TestDatabase db(TestDatabase::Tables::none);
  const auto sql = db.session();
  CHECK(code_of([&] { (void)inbox_status(*sql); }) == ErrorCode::schema_missing);
  CHECK(code_of([&] { (void)find_message(*sql, "svc", "k"); }) == ErrorCode::schema_missing);
  CHECK(code_of([&] { (void)list_leases(*sql); }) == ErrorCode::schema_missing);
  CHECK(code_of([&] { (void)list_conflicts(*sql); }) == ErrorCode::schema_missing);
  CHECK(code_of([&] { (void)list_conflicts(*sql, {.business_key = std::string(256, 'k')}); }) ==
        ErrorCode::invalid_key);
  CHECK(code_of([&] { (void)list_leases(*sql, {.consumer = std::string(65, 'c')}); }) == ErrorCode::invalid_key);
  CHECK(code_of([&] { forget(*sql, "svc", "k"); }) == ErrorCode::schema_missing);
  CHECK(code_of([&] { (void)find_message(*sql, "", "k"); }) == ErrorCode::invalid_key);
  CHECK(code_of([&] { (void)find_message(*sql, "svc", std::string(256, 'k')); }) == ErrorCode::invalid_key);
  CHECK(code_of([&] { forget(*sql, "svc", std::string("a\0b", 3)); }) == ErrorCode::invalid_key);
}

TEST_CASE("what only reads leaves no transaction open with autocommit off, and sees what others commit" *
          doctest::skip(!has_autocommit_setting())) {
  const TestDatabase db;
  const auto sql = db.session();
  *sql << "set autocommit = 0";
  const auto leaves_nothing_open = [&](const auto& read) {
    read();
    CHECK_NOTHROW((void)list_failed(*sql));  // it refuses an open transaction
  };
  leaves_nothing_open([&] { CHECK(!find_message(*sql, "svc", "a")); });
  consume(db, "svc", {.business_key = "a"});
  leaves_nothing_open([&] { CHECK(find_message(*sql, "svc", "a").has_value()); });
  leaves_nothing_open([&] { (void)list_leases(*sql); });
  leaves_nothing_open([&] { (void)list_conflicts(*sql); });
  leaves_nothing_open([&] { (void)inbox_status(*sql); });
  leaves_nothing_open([&] { (void)has_consumer(*sql, "svc"); });
  leaves_nothing_open([&] { (void)list_pauses(*sql); });
  leaves_nothing_open([&] { (void)list_audit(*sql); });
  *sql << "insert into txinbox_consumer (consumer) values ('mine')";
  CHECK(find_message(*sql, "svc", "a").has_value());  // in the caller's own transaction, which stays open
  int mine = 0;
  *sql << "select count(*) from txinbox_consumer where consumer = 'mine'", soci::into(mine);
  CHECK(mine == 1);
  sql->rollback();
}

}  // namespace
}  // namespace txinbox::test
