#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/schema.hpp>

#include "backend/registry.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "support/capabilities.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

long long recorded_versions(const TestDatabase& db) { return db.number("select count(*) from txinbox_schema"); }

TEST_CASE("the embedded migrations are equal to the files, and have the numbers from one without a gap") {
  const auto all = migrations(database());
  REQUIRE(!all.empty());
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i].sql == text_of(migration_files()[i]));
  CHECK(all.front().name == "inbox");
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i].version == static_cast<int>(i) + 1);
}

TEST_CASE("an unknown database has no migrations") {
  try {
    (void)migrations("oracle");
    FAIL("nothing was thrown");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::unsupported_database);
  }
}

TEST_CASE("migrate makes tables that verify accepts, and can run again") {
  const TestDatabase db(TestDatabase::Tables::none);
  const auto sql = db.session();
  for (int i = 0; i < 3; ++i) {
    migrate(*sql);
    CHECK(!refusal_by_verify(db));
    CHECK(recorded_versions(db) == static_cast<long long>(migrations(database()).size()));
  }
  CHECK(db.text("select oldest_library from txinbox_schema where version = 1") == "0.1.0");
}

TEST_CASE("migrate keeps existing rows") {
  const TestDatabase db;
  db.run(
      here<std::string>("insert into txinbox_consumed_message (consumer, business_key, state, attempt_token) values "
                        "('c', 'k', 'consumed', x'00')",
                        "insert into txinbox_consumed_message (consumer, business_key, state, attempt_token, "
                        "consumed_at) values ('c', 'k', "
                        "'consumed', x'00', now())",
                        "insert into txinbox_consumed_message (consumer, business_key, state, attempt_token) values "
                        "('c', 'k', 'consumed', "
                        "gen_random_uuid())"));
  migrate(*db.session());
  CHECK(db.number("select count(*) from txinbox_consumed_message") == 1);
}

TEST_CASE("migrate works on a pool's connection, and leaves no transaction open") {
  const TestDatabase db(TestDatabase::Tables::none);
  Pool pool = db.pool(1);
  const auto connection = pool.acquire();
  migrate(connection);
  verify(connection);
  migrate(connection);
  CHECK(!refusal_by_verify(db));
}

TEST_CASE("migrate and verify refuse a session that is inside a transaction") {
  const TestDatabase db(TestDatabase::Tables::none);
  const auto sql = db.session();
  using Call = void (*)(soci::session&);
  for (const Call call :
       {Call([](soci::session& s) { (void)migrate(s); }), Call([](soci::session& s) { verify(s); })}) {
    sql->begin();
    *sql << "create table mine (id integer)";  // this statement commits on MySQL
    if (ddl_commits()) {
      sql->begin();
      *sql << "insert into mine values (1)";
    }
    try {
      call(*sql);
      FAIL("nothing was thrown");
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::transaction_open);
    }
    sql->rollback();
    if (ddl_commits()) *sql << "drop table mine";
  }
  CHECK(!has_table(db, "txinbox_consumed_message"));
}

TEST_CASE("a session with autocommit off can migrate, verify and migrate again" *
          doctest::skip(!has_autocommit_setting())) {
  const TestDatabase db(TestDatabase::Tables::none);
  const auto sql = db.session();
  *sql << "set autocommit = 0";
  migrate(*sql);
  verify(*sql);
  migrate(*sql);
  CHECK(recorded_versions(db) ==
        static_cast<long long>(migration_files().size()));  // another session sees the rows, so they are committed
  long long autocommit = 1;
  *sql << "select @@autocommit", soci::into(autocommit);
  CHECK(autocommit == 0);
}

TEST_CASE("threads that migrate at the same time all succeed, and each version is recorded once") {
  const TestDatabase db(TestDatabase::Tables::none);
  std::vector<std::future<void>> running;
  for (int i = 0; i < 8; ++i) {
    running.push_back(std::async(std::launch::async, [&db] { migrate(*db.session(on_sqlite3() ? "timeout=0" : "")); }));
  }
  for (auto& one : running) CHECK_NOTHROW(one.get());
  CHECK(recorded_versions(db) == static_cast<long long>(migration_files().size()));
  CHECK(!refusal_by_verify(db));
}

TEST_CASE("(run by the next test, in a separate process)" * doctest::skip()) {
  const char* url = std::getenv("TXINBOX_TEST_MIGRATE_URL");
  REQUIRE(url != nullptr);
  Pool pool = open_pool(url, {.connections = 1});
  migrate(pool.acquire());
}

TEST_CASE("processes that migrate at the same time all succeed") {
  const TestDatabase db(TestDatabase::Tables::none);
  const auto program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<std::future<Ran>> running;
  for (int i = 0; i < 3; ++i) {
    running.push_back(std::async(std::launch::async, [&] {
      return run_program("TXINBOX_TEST_MIGRATE_URL=" + shell_quoted(db.url()) + " " + shell_quoted(program) +
                         " --no-skip --test-case='(run by the next test*'");
    }));
  }
  for (auto& one : running) {
    const Ran ran = one.get();
    CHECK_MESSAGE(ran.status == 0, ran.output);
    CHECK(ran.output.find("1 passed") != std::string::npos);
  }
  CHECK(recorded_versions(db) == static_cast<long long>(migration_files().size()));
  CHECK(!refusal_by_verify(db));
}

TEST_CASE("migrate waits for another migrate that is running") {
  const TestDatabase db(TestDatabase::Tables::none);
  const auto first = db.session();
  const auto catalog = backend::database_of(*first).catalog(backend::connection_of(*first));
  catalog->begin_migrations();
  auto second = std::async(std::launch::async, [&db] { migrate(*db.session()); });
  CHECK(second.wait_for(300ms) == std::future_status::timeout);
  catalog->end_migrations();
  CHECK_NOTHROW(second.get());
  CHECK(recorded_versions(db) == static_cast<long long>(migration_files().size()));
}

TEST_CASE("migrate does not change the session's settings, also if it fails") {
  const TestDatabase db(TestDatabase::Tables::none);
  const auto sql = db.session();
  const auto settings = [&] {
    std::string value;
    *sql << here<std::string>(
        "select timeout from pragma_busy_timeout",
        "select concat_ws(' ', @@sql_mode, @@autocommit, @@lock_wait_timeout, is_free_lock(concat('txinbox ', "
        "left(sha2(database(), 256), 40))))",
        "select concat_ws(' ', current_setting('lock_timeout'), current_setting('statement_timeout'), "
        "current_setting('search_path'), current_setting('client_min_messages'), (select count(*) from pg_locks where "
        "locktype = 'advisory' and pid = pg_backend_pid()))"),
        soci::into(value);
    return value;
  };
  const auto before = settings();
  REQUIRE(!before.empty());
  migrate(*sql);
  CHECK(settings() == before);

  const TestDatabase other(TestDatabase::Tables::none);
  other.run("create view txinbox_schema as select 1 as version");
  const auto failing = other.session();
  CHECK_THROWS_AS(migrate(*failing), Error);
  CHECK_NOTHROW(other.run("drop view txinbox_schema"));
  CHECK_NOTHROW(migrate(*failing));
}

TEST_CASE("migrate refuses a table with other columns, and creates no other table") {
  const TestDatabase db(TestDatabase::Tables::none);
  SUBCASE("the table of consumed messages") {
    db.run("create table txinbox_consumed_message (id integer primary key)");
    const auto refusal = refusal_by_migrate(db);
    REQUIRE(refusal);
    CHECK(refusal->code == ErrorCode::schema_mismatch);
    CHECK(refusal->text.find("txinbox_consumed_message.business_key") != std::string::npos);
    CHECK(!has_table(db, "txinbox_schema"));
  }
  SUBCASE("the table of versions") {
    db.run("create table txinbox_schema (id integer primary key)");
    const auto refusal = refusal_by_migrate(db);
    REQUIRE(refusal);
    CHECK(refusal->text.find("txinbox_schema.oldest_library") != std::string::npos);
    CHECK(!has_table(db, "txinbox_consumed_message"));
  }
  SUBCASE("a view with the name of the table") {
    db.run("create view txinbox_schema as select 1 as version");
    const auto refusal = refusal_by_migrate(db);
    REQUIRE(refusal);
    CHECK(refusal->code == ErrorCode::schema_mismatch);
    CHECK(!has_table(db, "txinbox_consumed_message"));
  }
}

TEST_CASE("a migration that fails in the middle leaves no tables, and succeeds after the cause is removed" *
          doctest::skip(ddl_commits())) {
  const TestDatabase db(TestDatabase::Tables::none);
  // This object has the name of the second table, so that only the second table cannot be created.
  if (on_sqlite3()) db.run("create table mine (id integer)");
  db.run(here<std::string>("create index txinbox_schema on mine (id)", "", "create type txinbox_schema as enum ('x')"));
  const auto sql = db.session();
  CHECK_THROWS_AS(migrate(*sql), soci::soci_error);
  CHECK(!has_table(db, "txinbox_consumed_message"));
  CHECK(!has_table(db, "txinbox_schema"));

  db.run(here<std::string>("drop index txinbox_schema", "", "drop type txinbox_schema"));
  CHECK_NOTHROW(migrate(*sql));
  CHECK(!refusal_by_verify(db));
}

TEST_CASE("the next migrate completes an interrupted migration" * doctest::skip(!ddl_commits())) {
  const TestDatabase db(TestDatabase::Tables::none);
  const auto script = all_migrations();
  const auto second_table = script.find("CREATE TABLE IF NOT EXISTS txinbox_schema");
  REQUIRE(second_table != std::string::npos);
  run_statements(db, script.substr(0, second_table));
  db.run(
      "insert into txinbox_consumed_message (consumer, business_key, state, attempt_token, consumed_at) values ('c', "
      "'k', 'consumed', x'00', now())");
  CHECK(refusal_by_verify(db)->code == ErrorCode::schema_missing);
  SUBCASE("after the first table") {}
  SUBCASE("before its version was recorded") {
    run_statements(db, script.substr(second_table, script.find("INSERT INTO txinbox_schema") - second_table));
    CHECK(refusal_by_verify(db)->code == ErrorCode::schema_outdated);
  }
  migrate(*db.session());
  CHECK(!refusal_by_verify(db));
  CHECK(db.number("select count(*) from txinbox_consumed_message") == 1);
}

TEST_CASE("a statement of a migration may take longer than statement_timeout" * doctest::test_suite("timed") *
          doctest::skip(!ddl_commits())) {
  const TestDatabase db;
  Pool pool = open_pool(db.url(), {.connections = 1, .statement_timeout = 1s});
  const auto connection = pool.acquire();
  const auto catalog = backend::database_of(*connection).catalog(backend::connection_of(*connection));
  catalog->begin_migrations();
  // The statement waits by itself. A node of a Galera cluster would end a transaction that holds the table's lock.
  CHECK_NOTHROW(catalog->apply("CREATE TABLE slow AS SELECT SLEEP(2.5) AS was_ended"));
  catalog->end_migrations();
  CHECK(db.number("select was_ended from slow") == 0);
  CHECK(!refusal_by_verify(db));
}

TEST_CASE("a migration continues if its procedure exists already" * doctest::skip(database() != "mysql")) {
  const TestDatabase db(TestDatabase::Tables::none);
  const auto sql = db.session();
  const auto catalog = backend::database_of(*sql).catalog(backend::connection_of(*sql));
  for (int i = 0; i < 2; ++i) {
    // MySQL before 8.0.29 does not know IF NOT EXISTS here.
    CHECK_NOTHROW(catalog->apply("CREATE PROCEDURE made() SELECT 1; CREATE TABLE IF NOT EXISTS behind (a INT);"));
  }
  CHECK(has_table(db, "behind"));
}

TEST_CASE("a migration continues if another node of a cluster has just created its index" *
          doctest::skip(database() != "mysql")) {
  const TestDatabase db;
  const auto sql = db.session();
  const auto catalog = backend::database_of(*sql).catalog(backend::connection_of(*sql));
  for (int i = 0; i < 2; ++i) {
    CHECK_NOTHROW(
        catalog->apply("CREATE INDEX made ON txinbox_audit (at); CREATE TABLE IF NOT EXISTS behind (a INT);"));
  }
  CHECK(has_table(db, "behind"));
}

TEST_CASE("migrate finds tables in another schema of the search_path, and migrates them there" *
          doctest::skip(database() != "postgresql")) {
  const TestDatabase db;
  const TestDatabase front(TestDatabase::Tables::none);
  db.run("delete from txinbox_schema");
  const auto sql = db.session();
  *sql << "set search_path = " + front.text("select current_schema()") + ", " + db.text("select current_schema()");
  migrate(*sql);
  CHECK(recorded_versions(db) == static_cast<long long>(migration_files().size()));
  CHECK(!has_table(front, "txinbox_schema"));
  CHECK_NOTHROW(verify(*sql));
}

}  // namespace
}  // namespace txinbox::test
