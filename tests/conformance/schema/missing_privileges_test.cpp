// A user without the privileges of a migration, or to write.

#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/schema_tools.hpp"
#include "support/test_user.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("a service that calls migrate at its start needs no privilege to create tables" *
          doctest::skip(!has_users())) {
  const TestDatabase db;
  const User user(db);
  grant_service(user, db);
  CHECK_NOTHROW(migrate(user.pool().acquire()));
}

TEST_CASE("without the privilege to create tables, the migration fails and leaves no tables" *
          doctest::skip(!has_users())) {
  const TestDatabase db(TestDatabase::Tables::none);
  const User user(db);
  if (on_postgresql()) user.grant("usage on schema " + schema_of(db));
  if (on_mysql()) user.grant("select, insert, update on " + schema_of(db) + ".*");
  Pool pool = user.pool();
  const auto connection = pool.acquire();
  CHECK_THROWS_AS(migrate(connection), soci::soci_error);
  CHECK(!has_table(db, "txinbox_consumed_message"));
}

TEST_CASE("tables that a user may not see count as missing, and the error names this cause" *
          doctest::skip(!has_users())) {
  const TestDatabase db;
  const User user(db);
  if (on_postgresql()) user.grant("select on " + schema_of(db) + ".txinbox_schema");  // without USAGE on the schema
  if (on_mysql()) user.grant("select on " + schema_of(db) + ".txinbox_schema");
  Pool pool = user.pool();
  try {
    verify(pool.acquire());
    FAIL("nothing was thrown");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::schema_missing);
    CHECK(std::string(e.what()).find("may not see") != std::string::npos);
  }
}

TEST_CASE("if SQLite may not write, the service throws SQLite's error" * doctest::skip(database() != "sqlite3")) {
  const TestDatabase db;
  const auto sql = db.session();
  *sql << "pragma query_only = on";
  CHECK_NOTHROW(verify(*sql));
  TxConsumer consumer(*sql, "svc");
  CHECK_THROWS_AS((void)consumer.consume({.business_key = "1"}, [](soci::session&, Delivery&) {}), soci::soci_error);
}

}  // namespace
}  // namespace txinbox::test
