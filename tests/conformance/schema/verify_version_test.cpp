// Tables that are missing, too old, or newer than the library.

#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/schema_tools.hpp"
#include "support/test_database.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("missing tables are named, with the command that creates them") {
  const TestDatabase db(TestDatabase::Tables::none);
  SUBCASE("both tables") {
    const auto refusal = refusal_by_verify(db);
    REQUIRE(refusal);
    CHECK(refusal->code == ErrorCode::schema_missing);
    CHECK(remedy_in(refusal->text, "txinbox_consumed_message").find("txinbox migrate") != std::string::npos);
    CHECK(!remedy_in(refusal->text, "txinbox_schema").empty());
  }
  for (const std::string& missing : {std::string("txinbox_consumed_message"), std::string("txinbox_schema")}) {
    SUBCASE(missing.c_str()) {
      migrate(*db.session());
      db.run("drop table " + missing);
      const auto refusal = refusal_by_verify(db);
      REQUIRE(refusal);
      CHECK(refusal->code == ErrorCode::schema_missing);
      CHECK(!remedy_in(refusal->text, missing).empty());
      CHECK(findings_in(refusal->text) == 1);
      migrate(*db.session());
      CHECK(!refusal_by_verify(db));
    }
  }
}

TEST_CASE("tables that are too old are refused until they are migrated") {
  const TestDatabase db;
  db.run("delete from txinbox_schema");
  const auto refusal = refusal_by_verify(db);
  REQUIRE(refusal);
  CHECK(refusal->code == ErrorCode::schema_outdated);
  const std::string remedy = remedy_in(refusal->text, "txinbox_schema");
  for (const std::string& file : migration_files()) {
    CHECK(remedy.find(file.substr(file.rfind('/') + 1)) != std::string::npos);
  }
  migrate(*db.session());
  CHECK(!refusal_by_verify(db));
}

TEST_CASE("newer tables are accepted only if they support this library") {
  const std::vector<std::pair<std::string, bool>> cases = {
      {"0.0.9", true},  {"0.1.0", true}, {"0.1.1", false}, {"0.10.0", false},
      {"1.0.0", false}, {"", false},     {"soon", false},  {"0.1.0-x", false},
  };
  for (const auto& one : cases) {
    const auto& oldest_library = one.first;
    const bool accepted = one.second;
    CAPTURE(oldest_library);
    const TestDatabase db;
    const std::string now = on_mysql() ? "now()" : "current_timestamp";
    db.run("insert into txinbox_schema (version, name, oldest_library, applied_at) values (99, 'later', '" +
           oldest_library + "', " + now + ")");
    for (const auto& refusal : {refusal_by_verify(db), refusal_by_migrate(db)}) {
      CHECK(refusal.has_value() == !accepted);
      if (!refusal) continue;
      CHECK(refusal->code == ErrorCode::schema_too_new);
      CHECK(!remedy_in(refusal->text, "txinbox_schema").empty());
    }
    CHECK(db.number("select count(*) from txinbox_schema where version = 99") == 1);
  }
}

}  // namespace
}  // namespace txinbox::test
