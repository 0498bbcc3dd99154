// verify names each difference between the existing tables and the migrations, with a remedy. The remedy removes the
// difference.

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/schema.hpp>

#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

struct Difference {
  std::string what;
  std::string script;                 ///< Creates the tables with this difference.
  std::string subject;                ///< The subject of the finding.
  bool fixed_by_sql = !on_sqlite3();  ///< SQLite cannot change a column in place.
  int findings = 1;
};

const std::string table = "txinbox_consumed_message";

Difference column(const std::string& what, const std::string& name, const std::string& definition) {
  return {what, with_column(all_migrations(), name, definition), table + "." + name};
}

Difference in_text(const std::string& what, const std::string& from, const std::string& to,
                   const std::string& subject = table) {
  return {what, replaced(all_migrations(), from, to), subject};
}

Difference afterwards(const std::string& what, const std::string& sql, const std::string& subject = table) {
  return {what, all_migrations() + "\n" + sql + ";", subject};
}

std::vector<Difference> on_every_database() {
  std::vector<Difference> all = {
      column("a column is missing", "attempts", ""),
      column("a column has another type", "attempts", "NUMERIC"),
      column("a column that must accept NULL does not", "lease_fence", "BIGINT NOT NULL DEFAULT 0"),
      afterwards("a column of a later version's table is missing",
                 "ALTER TABLE txinbox_failed_message DROP COLUMN payload", "txinbox_failed_message.payload"),
      afterwards("a unique index that is not ours",
                 "CREATE UNIQUE INDEX mine ON txinbox_consumed_message (attempt_token)"),
  };
  all.push_back(column("the key is a number", "business_key", "BIGINT NOT NULL"));
  return all;
}

std::vector<Difference> on_sqlite3_only() {
  const std::string primary_key = "  PRIMARY KEY (consumer, business_key)\n) WITHOUT ROWID";
  auto nullable = column("the key may be NULL", "business_key", "TEXT");
  nullable.script = replaced(nullable.script, "WITHOUT ROWID", "");
  auto no_default = column("the time has no default", "consumed_at", "TEXT NOT NULL");
  return {
      column("the key's collation merges case", "business_key", "TEXT COLLATE NOCASE NOT NULL"),
      column("the key's collation merges trailing spaces", "consumer", "TEXT COLLATE RTRIM NOT NULL"),
      column("STRING is numeric: 007 would be 7", "business_key", "STRING NOT NULL"),
      column("the key has no type", "business_key", "NOT NULL"),
      nullable,
      no_default,
      in_text("the primary key's collation merges case", primary_key,
              "  PRIMARY KEY (consumer, business_key COLLATE NOCASE)\n)", table + ".business_key"),
      in_text("the primary key is missing", primary_key, "  CHECK (1)\n)"),
      in_text("the primary key has the other order", primary_key, "  PRIMARY KEY (business_key, consumer)\n)"),
      in_text("the primary key is wider", primary_key, "  PRIMARY KEY (consumer, business_key, state)\n)"),
      {"a column that is not ours needs a value",
       with_column(all_migrations(), "lease_owner", "TEXT, mine TEXT NOT NULL"), table + ".mine"},
  };
}

std::vector<Difference> on_mysql_only() {
  const std::string primary_key = "  PRIMARY KEY (consumer, business_key),\n";
  auto nullable = column("the key may be NULL", "business_key", "VARBINARY(255) NULL");
  nullable.script = replaced(nullable.script, primary_key, "  UNIQUE KEY (consumer, business_key),\n");
  nullable.fixed_by_sql = false;
  nullable.findings = 2;  // the second finding: no primary key
  auto reversed =
      in_text("the primary key has the other order", primary_key, "  PRIMARY KEY (business_key, consumer),\n");
  auto prefix =
      in_text("the primary key holds a prefix", primary_key, "  PRIMARY KEY (consumer, business_key(100)),\n");
  reversed.fixed_by_sql = prefix.fixed_by_sql = false;  // the remedy has two steps
  auto foreign = afterwards("a column that is not ours needs a value",
                            "ALTER TABLE txinbox_consumed_message ADD COLUMN mine INT NOT NULL", table + ".mine");
  foreign.fixed_by_sql = false;  // the owner of the column must decide
  return {
      column("the key's collation merges case", "business_key", "VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL"),
      column("utf8mb4_bin pads with spaces", "business_key",
             "VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"),
      column("the key column is too short", "business_key", "VARBINARY(254) NOT NULL"),
      column("the consumer column is too short", "consumer", "VARBINARY(32) NOT NULL"),
      column("BINARY pads with NUL", "business_key", "BINARY(255) NOT NULL"),
      afterwards("the result column is too short", "ALTER TABLE txinbox_consumed_message MODIFY result TINYBLOB NULL",
                 table + ".result"),
      column("the time has no fraction", "consumed_at", "DATETIME NOT NULL"),
      column("the time is converted", "consumed_at", "TIMESTAMP(6) NOT NULL"),
      nullable,
      in_text("the primary key is missing", primary_key, ""),
      reversed,
      prefix,
      in_text("an engine without transactions", "ENGINE = InnoDB", "ENGINE = MyISAM"),
      in_text("an engine without transactions for the versions",
              "applied_at     DATETIME(6) NOT NULL\n) ENGINE = InnoDB",
              "applied_at     DATETIME(6) NOT NULL\n) ENGINE = MyISAM", "txinbox_schema"),
      foreign,
  };
}

std::vector<Difference> on_postgresql_only() {
  const std::string primary_key = "  CONSTRAINT txinbox_consumed_message_pkey PRIMARY KEY (consumer, business_key)\n";
  auto nullable = column("the key may be NULL", "business_key", "text COLLATE \"C\"");
  nullable.script = replaced(nullable.script, primary_key, "  CONSTRAINT mine UNIQUE (consumer, business_key)\n");
  nullable.fixed_by_sql = false;
  nullable.findings = 2;  // the second finding: no primary key
  auto reversed =
      in_text("the primary key has the other order", primary_key, "  PRIMARY KEY (business_key, consumer)\n");
  auto deferrable =
      in_text("the primary key is deferrable", primary_key, "  PRIMARY KEY (consumer, business_key) DEFERRABLE\n");
  reversed.fixed_by_sql = deferrable.fixed_by_sql = false;  // the remedy has two steps
  auto insensitive = column("the key's collation merges case", "business_key", "text COLLATE insensitive NOT NULL");
  insensitive.script =
      "CREATE COLLATION insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false);\n" +
      insensitive.script;
  auto foreign = afterwards("a column that is not ours needs a value",
                            "ALTER TABLE txinbox_consumed_message ADD COLUMN mine integer NOT NULL", table + ".mine");
  auto unique = afterwards("a unique constraint that is not ours",
                           "ALTER TABLE txinbox_consumed_message ADD CONSTRAINT mine UNIQUE (message_id)");
  foreign.fixed_by_sql = false;  // the owner of the column must decide
  return {
      insensitive,
      column("the key has the locale's order", "business_key", "text NOT NULL"),
      column("char pads with spaces", "business_key", "char(255) COLLATE \"C\" NOT NULL"),
      column("the key column is too short", "business_key", "varchar(100) COLLATE \"C\" NOT NULL"),
      column("the token is text", "attempt_token", "text NOT NULL"),
      column("the time has no zone", "consumed_at", "timestamp NOT NULL DEFAULT clock_timestamp()"),
      column("the time has no default", "consumed_at", "timestamptz NOT NULL"),
      nullable,
      in_text("the primary key is missing", primary_key, "  CHECK (true)\n"),
      reversed,
      deferrable,
      in_text("a crash empties the table", "CREATE TABLE IF NOT EXISTS txinbox_consumed_message",
              "CREATE UNLOGGED TABLE IF NOT EXISTS txinbox_consumed_message"),
      unique,
      foreign,
  };
}

TEST_CASE("verify names each difference, and the remedy removes the difference") {
  auto all = on_every_database();
  std::ranges::move(here(on_sqlite3_only, on_mysql_only, on_postgresql_only)(), std::back_inserter(all));
  for (const Difference& difference : all) {
    CAPTURE(difference.what);
    const TestDatabase db(TestDatabase::Tables::none);
    run_statements(db, difference.script);
    const auto refusal = refusal_by_verify(db);
    REQUIRE(refusal);
    CHECK(refusal->code == ErrorCode::schema_mismatch);
    CAPTURE(refusal->text);
    const auto remedy = remedy_in(refusal->text, difference.subject);
    REQUIRE(!remedy.empty());
    CHECK(findings_in(refusal->text) == difference.findings);  // this difference and no other
    CHECK(refusal->text.find('\n') == std::string::npos);

    const auto again = refusal_by_migrate(db);
    REQUIRE(again);
    CHECK(again->text == refusal->text);

    if (!difference.fixed_by_sql) continue;
    db.run(remedy);
    CHECK(!refusal_by_verify(db));
  }
}

TEST_CASE("a table of another program with our name is a mismatch, and not a missing migration") {
  const TestDatabase db(TestDatabase::Tables::none);
  db.run("create table txinbox_consumed_message (id integer)");
  const auto refusal = refusal_by_verify(db);
  REQUIRE(refusal);
  CHECK(refusal->code == ErrorCode::schema_mismatch);
}

TEST_CASE("verify lists several differences together") {
  const TestDatabase db(TestDatabase::Tables::none);
  run_statements(db, with_column(with_column(all_migrations(), "attempts", ""), "lease_fence", "DATE"));
  const auto refusal = refusal_by_verify(db);
  REQUIRE(refusal);
  CHECK(!remedy_in(refusal->text, table + ".attempts").empty());
  CHECK(!remedy_in(refusal->text, table + ".lease_fence").empty());
}

TEST_CASE("tables with more columns, more indexes or wider types are accepted") {
  const TestDatabase db;
  db.run("alter table txinbox_consumed_message add column mine integer");
  db.run("alter table txinbox_consumed_message add column given integer not null default 1");
  db.run("create index further on txinbox_consumed_message (message_id)");
  db.run("create unique index harmless on txinbox_consumed_message (consumer, business_key, state)");
  if (on_mysql()) {
    db.run("alter table txinbox_consumed_message modify result longblob, modify business_key varbinary(500) not null");
  }
  const auto refusal = refusal_by_verify(db);
  CHECK_MESSAGE(!refusal, refusal.value_or(Refusal{}).text);
}

TEST_CASE(
    "a consumer does not need the tables of the outbox and of the operations, diagnose reports each that is missing, "
    "and migrate makes it again") {
  const TestDatabase db;
  for (const std::string missing :
       {"outbox_message", "outbox_relay", "outbox_part", "outbox_database", "pause", "audit"}) {
    const std::string name = "txinbox_" + missing;
    CAPTURE(name);
    db.run("drop table " + name);
    CHECK_FALSE(refusal_by_verify(db));
    const auto findings = findings_about(*db.session(), name);
    REQUIRE(findings.size() == 1);
    CHECK(findings.front().severity == Severity::error);
    CHECK(findings.front().remedy.find("txinbox migrate") != std::string::npos);
    CHECK_FALSE(migrate(*db.session()).empty());
    CHECK(findings_about(*db.session(), name).empty());
    CHECK(migrate(*db.session()).empty());
  }
  CHECK(db.number("select count(*) from txinbox_outbox_part") == 64);
  CHECK(db.number("select count(*) from txinbox_outbox_database") == 1);
}

TEST_CASE("a missing index for retention is a warning, and verify accepts it") {
  const TestDatabase db;
  db.run(on_mysql() ? "alter table txinbox_consumed_message drop index txinbox_consumed_message_consumed_at"
                    : "drop index txinbox_consumed_message_consumed_at");
  CHECK(!refusal_by_verify(db));
  const auto sql = db.session();
  const auto findings = findings_about(*sql, table);
  REQUIRE(findings.size() == 1);
  CHECK(findings.front().severity == Severity::warning);
  *sql << findings.front().remedy;
  CHECK(findings_about(*sql, table).empty());
}

TEST_CASE("a table that hides rows from the service is an error" * doctest::skip(database() != "postgresql")) {
  const TestDatabase db;
  db.run("alter table txinbox_consumed_message force row level security");
  db.run("alter table txinbox_consumed_message enable row level security");
  const std::string role = "txinbox_test_reader_" + db.text("select current_schema()").substr(13, 12);
  const std::string schema = db.text("select current_schema()");
  db.run("create role " + role);
  db.run("grant usage on schema " + schema + " to " + role);
  db.run("grant select, insert, update on all tables in schema " + schema + " to " + role);
  {
    const auto sql = db.session();
    *sql << "set role " + role;
    const auto findings = findings_about(*sql, table);
    REQUIRE(findings.size() == 1);
    CHECK(findings.front().severity == Severity::error);
    CHECK(findings.front().remedy.find("ROW LEVEL SECURITY") != std::string::npos);
  }
  db.run("drop owned by " + role);
  db.run("drop role " + role);
}

TEST_CASE("verify reports an unsafe session together with the problems of the tables") {
  const TestDatabase db(TestDatabase::Tables::none);
  const auto sql = db.session(on_mysql() ? "reconnect=1" : "");
  *sql << here<std::string>("pragma journal_mode = off", "set session sql_mode = ''", "set client_encoding = 'LATIN1'");
  const std::vector<std::string> subjects =
      here<std::vector<std::string>>({"journal_mode"}, {"sql_mode", "reconnect"}, {"client_encoding"});
  const auto text_of = [&](ErrorCode code) -> std::string {
    try {
      verify(*sql);
    } catch (const Error& e) {
      CHECK(e.code() == code);
      return e.what();
    }
    FAIL("nothing was thrown");
    return "";
  };
  for (const auto& subject : subjects) CHECK(!remedy_in(text_of(ErrorCode::schema_missing), subject).empty());
  migrate(*db.session());
  for (const auto& subject : subjects) CHECK(!remedy_in(text_of(ErrorCode::unsafe_connection), subject).empty());
}

}  // namespace
}  // namespace txinbox::test
