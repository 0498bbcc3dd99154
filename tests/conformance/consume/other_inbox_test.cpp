// A service's own session that goes to the inbox of another schema, for example of another tenant.

#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/operations.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

std::string schema_of(const TestDatabase& db) {
  return db.text(on_mysql() ? "select database()" : "select current_schema()");
}

std::string go_to(const std::string& schema) { return (on_mysql() ? "use " : "set search_path = ") + schema; }

/// The same schema, named in another way.
std::string go_around(const std::string& schema) {
  return on_mysql() ? "use " + schema : "set search_path = pg_temp, " + schema + ", public";
}

TEST_CASE("a consumer refuses a message while its session finds another inbox" * doctest::skip(on_sqlite3())) {
  EffectDatabase db;
  const EffectDatabase other;
  const auto sql = db.session();
  const std::string here = schema_of(db);
  const std::string there = schema_of(other);
  TxConsumer consumer(*sql, "svc");
  const auto consume = [&] { return thrown_by([&] { (void)consumer.consume({.business_key = "a"}, add_effect); }); };
  int messages = 0;
  // The ways differ: the first message of the session, the next ones, and a read of the key before its insert.
  for (const int before : {1, 2, 3, 8}) {
    for (; messages < before; ++messages) {
      CHECK(consumer.consume({.business_key = "a"}, add_effect).outcome == (messages == 0 ? consumed : duplicate));
    }
    *sql << go_to(there);
    CHECK(consume() == "unsafe_connection");
    *sql << go_around(here);
    CHECK(consume() == "nothing");
    *sql << go_to(here);
  }
  CHECK(consumer.consume({.business_key = "new"}, add_effect).outcome == consumed);
  *sql << go_to(there);
  CHECK(thrown_by([&] { (void)consumer.consume({.business_key = "newer"}, add_effect); }) == "unsafe_connection");
  CHECK(db.claims() == 2);
  CHECK(other.claims() == 0);
  TxConsumer of_other(*sql, "svc");
  CHECK(of_other.consume({.business_key = "a"}, add_effect).outcome == consumed);
  CHECK(other.effects() == 1);
}

TEST_CASE("a batch and a lease refuse the inbox of another schema" * doctest::skip(on_sqlite3())) {
  EffectDatabase db;
  const EffectDatabase other;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  LeaseConsumer leases(*sql, "leases");
  const auto batch = [&] {
    return thrown_by([&] {
      for (const Result& each : consumer.consume_batch(messages_of({"a", "b"}), add_effect)) {
        if (each.error) std::rethrow_exception(each.error);
      }
    });
  };
  const auto lease = [&](const std::string& key) {
    return thrown_by([&] { (void)leases.consume({.business_key = key}, [](Lease&) {}); });
  };
  for (int i = 0; i < 3; ++i) {
    CHECK(batch() == "nothing");
    CHECK(lease("a") == "nothing");
  }
  *sql << go_to(schema_of(other));
  CHECK(batch() == "unsafe_connection");
  CHECK(lease("a") == "unsafe_connection");
  CHECK(lease("b") == "unsafe_connection");
  CHECK(other.claims() == 0);
  *sql << go_to(schema_of(db));
  CHECK(batch() == "nothing");
  CHECK(lease("b") == "nothing");
}

TEST_CASE("a handler that leaves the session in another schema is completed, and counted if it fails" *
          doctest::skip(on_sqlite3())) {
  EffectDatabase db;
  const EffectDatabase other;
  const auto sql = db.session();
  LeaseConsumer leases(*sql, "leases");
  const std::string leave = go_to(schema_of(other));
  const std::string back = go_to(schema_of(db));
  CHECK(leases.consume({.business_key = "a"}, [&](Lease&) { *sql << leave; }).outcome == consumed);
  *sql << back;
  CHECK(db.number("select count(*) from txinbox_consumed_message where state = 'consumed'") == 1);

  TxConsumer consumer(*sql, "svc");
  CHECK(thrown_by([&] {
          (void)consumer.consume({.business_key = "a"}, [&](soci::session& session, Delivery&) {
            session << leave;
            throw std::runtime_error("bad");
          });
        }) == "other");
  CHECK(db.number("select attempts from txinbox_failed_message") == 1);
  *sql << back;
  CHECK(consumer.consume({.business_key = "a"}, add_effect).outcome == consumed);
  CHECK(other.claims() == 0);
}

TEST_CASE("an erased key of one inbox does not answer for another" * doctest::skip(on_sqlite3())) {
  EffectDatabase db;
  const EffectDatabase other;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  CHECK(consumer.consume({.business_key = "a"}, add_effect).outcome == consumed);
  const std::vector<std::string> keys{"a"};
  (void)erase(*db.session(), "svc", keys, {.actor = "ann", .reason = "request"}, {.no_consumer_runs = true});
  TxConsumer later(*sql, "svc");
  CHECK(later.consume({.business_key = "a"}, add_effect).outcome == duplicate);
  *sql << go_to(schema_of(other));
  CHECK(thrown_by([&] { (void)later.consume({.business_key = "a"}, add_effect); }) == "unsafe_connection");
  CHECK(thrown_by([&] {
          const auto results = later.consume_batch(messages_of({"a"}), add_effect);
          if (results[0].error) std::rethrow_exception(results[0].error);
        }) == "unsafe_connection");
}

TEST_CASE("another default database is found although the server does not tell the client of it" *
          doctest::skip(!on_mysql())) {
  EffectDatabase db;
  const EffectDatabase other;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  for (int i = 0; i < 4; ++i) CHECK(consumer.consume({.business_key = "a"}, add_effect).outcome != parked);
  *sql << "set session_track_schema = 0";
  *sql << go_to(schema_of(other));
  CHECK(thrown_by([&] { (void)consumer.consume({.business_key = "a"}, add_effect); }) == "unsafe_connection");
  CHECK(thrown_by([&] { (void)consumer.consume({.business_key = "b"}, add_effect); }) == "unsafe_connection");
  *sql << go_to(schema_of(db));
  CHECK(consumer.consume({.business_key = "b"}, add_effect).outcome == consumed);
}

}  // namespace
}  // namespace txinbox::test
