// The rows that Outbox::add inserts, also with a statement that stays prepared on the connection.

#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

OutgoingMessage booked() { return {.topic = "stock", .key = "order1", .type = "OrderBooked", .payload = "{}"}; }

long long rows(const TestDatabase& db) { return db.number("select count(*) from txinbox_outbox_message"); }

OutgoingMessage with_every_byte() {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  return {.topic = "it's \\ \"stock\"",
          .key = "schlüssel",
          .type = "",
          .payload = bytes,
          .headers = {{"traceparent", "00-\"x\""}, {"ü", ""}}};
}

/// Checks that the only row of the outbox has each byte of the message.
void check_every_byte(const TestDatabase& db, const std::string& id) {
  CHECK(rows(db) == 1);
  CHECK(db.number("select count(*) from txinbox_outbox_message where aggregateid = 'schlüssel' and type = '' and "
                  "parked_at is null and attempts = 0 and part = 39") == 1);  // the part of a key never changes
  CHECK(db.text(here<std::string>("select aggregatetype from txinbox_outbox_message",
                                  "select convert(aggregatetype using utf8mb4) from txinbox_outbox_message",
                                  "select aggregatetype from txinbox_outbox_message")) == "it's \\ \"stock\"");
  std::string hex;
  for (int i = 0; i < 256; ++i) hex += fmt::format("{:02x}", i);
  CHECK(db.text(here<std::string>("select lower(hex(payload)) from txinbox_outbox_message",
                                  "select convert(lower(hex(payload)) using utf8mb4) from txinbox_outbox_message",
                                  "select encode(payload, 'hex') from txinbox_outbox_message")) == hex);
  if (on_sqlite3()) CHECK(db.text("select typeof(payload) from txinbox_outbox_message") == "blob");
  CHECK(db.text(here<std::string>("select headers from txinbox_outbox_message",
                                  "select convert(headers using utf8mb4) from txinbox_outbox_message",
                                  "select headers from txinbox_outbox_message")) ==
        "{\"traceparent\":\"00-\\\"x\\\"\",\"ü\":\"\"}");
  CHECK(db.text(here<std::string>("select id from txinbox_outbox_message",
                                  "select convert(id using utf8mb4) from txinbox_outbox_message",
                                  "select cast(id as text) from txinbox_outbox_message")) == id);
}

TEST_CASE("the row has every byte of the message, in the columns of Debezium's event router") {
  const TestDatabase db;
  const auto sql = db.session();
  check_every_byte(db, Outbox::add(*sql, with_every_byte()));
}

TEST_CASE("the row of a handler has every byte of the message, also with a statement that stays prepared") {
  const TestDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  for (const char* key : {"a", "b", "c"}) {
    std::string id;
    CHECK(consumer
              .consume({.business_key = key},
                       [&](soci::session& sql, Delivery&) { id = Outbox::add(sql, with_every_byte()); })
              .outcome == Outcome::consumed);
    check_every_byte(db, id);
    db.run("delete from txinbox_outbox_message");
  }
  // A message without key, payload and headers.
  const auto add = [](soci::session& sql, Delivery&) { Outbox::add(sql, {.topic = "t"}); };
  CHECK(consumer.consume({.business_key = "d"}, add).outcome == Outcome::consumed);
  CHECK(db.number("select count(*) from txinbox_outbox_message where aggregateid = '' and length(payload) = 0 and "
                  "headers is null") == 1);
}

TEST_CASE("a handler whose connection has lost its prepared statements adds its message at the next attempt" *
          doctest::skip(!on_postgresql())) {
  const TestDatabase db;
  Pool pool = db.pool(1);
  int retries = 0;
  TxConsumer consumer(pool, "svc",
                      {.listeners = {on_event([&](const Event& e) { retries += e.type == EventType::retry; })}});
  for (int i = 0; i < 5; ++i) {
    const auto add = [&](soci::session& sql, Delivery&) {
      if (i > 0) sql << "deallocate all";
      Outbox::add(sql, booked());
    };
    CHECK(consumer.consume({.business_key = std::to_string(i)}, add).outcome == Outcome::consumed);
  }
  CHECK(retries == 1);  // after this, the connection keeps no statement prepared
  CHECK(rows(db) == 5);
}

TEST_CASE("a message that a handler adds after it has reconnected its session is not committed") {
  const TestDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto add = [](soci::session& sql, Delivery&) { Outbox::add(sql, booked()); };
  CHECK(consumer.consume({.business_key = "before"}, add).outcome == Outcome::consumed);
  CHECK_THROWS_AS((void)consumer.consume({.business_key = "order1"},
                                         [](soci::session& sql, Delivery&) {
                                           sql.reconnect();
                                           sql.begin();
                                           Outbox::add(sql, booked());
                                         }),
                  Error);
  CHECK(rows(db) == 1);
  CHECK(consumer.consume({.business_key = "order1"}, add).outcome == Outcome::consumed);
  CHECK(rows(db) == 2);
}

}  // namespace
}  // namespace txinbox::test
