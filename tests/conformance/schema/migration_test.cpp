// Operators apply the migrations from the files, with the database's own client.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/schema.hpp>

#include "base/url.hpp"
#include "support/capabilities.hpp"
#include "support/old_library.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

/// The documented command for one file.
std::string client_command(const TestDatabase& db, const std::string& file) {
  const detail::Url url = detail::parse_url(db.url());
  if (on_sqlite3()) {
    return "sqlite3 -bail " + shell_quoted("/" + url.path) + " 'BEGIN IMMEDIATE' " +
           shell_quoted(".read '" + file + "'") + " 'COMMIT'";
  }
  if (on_mysql()) {
    return "MYSQL_PWD=" + shell_quoted(url.password) + " mariadb --no-defaults --protocol=tcp -h " +
           shell_quoted(url.host) + " -P " + shell_quoted(url.port.empty() ? "3306" : url.port) + " -u " +
           shell_quoted(url.user) + " " + shell_quoted(url.path) + " < " + shell_quoted(file);
  }
  return "psql -X --single-transaction -v ON_ERROR_STOP=1 -f " + shell_quoted(file) + " " + shell_quoted(db.url());
}

/// Runs the client with each file.
void run_client(const TestDatabase& db, const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const Ran ran = run_program(client_command(db, file));
    REQUIRE_MESSAGE(ran.status == 0, ran.output);
  }
}

long long newest_version() { return static_cast<long long>(migration_files().size()); }

TEST_CASE("migrate and verify accept the tables that the database's own client makes from the files") {
  const TestDatabase db(TestDatabase::Tables::none);
  for (int i = 0; i < 2; ++i) {  // a file that was applied may be applied again
    run_client(db, migration_files());
    CHECK(!refusal_by_verify(db));
  }
  const auto applied_at = db.text("select applied_at from txinbox_schema where version = 1");
  migrate(*db.session());
  CHECK(!refusal_by_verify(db));
  CHECK(db.number("select count(*) from txinbox_schema") == newest_version());
  CHECK(db.text("select applied_at from txinbox_schema where version = 1") == applied_at);
}

TEST_CASE("the database's own client can apply the files again after migrate") {
  const TestDatabase db;
  run_client(db, migration_files());
  CHECK(!refusal_by_verify(db));
  CHECK(db.number("select count(*) from txinbox_schema") == newest_version());
}

TEST_CASE("the database's own client can upgrade the tables of a txinbox before 0.1.0") {
  const TestDatabase db(TestDatabase::Tables::none);
  run_client(db, {file_before_0_1_0(), upgrade_file()});
  run_client(db, migration_files());
  CHECK(!refusal_by_verify(db));
  CHECK(db.number("select count(*) from txinbox_schema") == newest_version());
}

TEST_CASE("a file that fails in the client leaves no tables" * doctest::skip(ddl_commits())) {
  const TestDatabase db(TestDatabase::Tables::none);
  const auto file = std::filesystem::temp_directory_path() / ("txinbox_broken_" + std::to_string(getpid()) + ".sql");
  std::ofstream(file) << text_of(migration_files().front()) << "\nINSERT INTO no_such_table VALUES (1);\n";
  const Ran ran = run_program(client_command(db, file.string()));
  std::filesystem::remove(file);
  CHECK(ran.status != 0);
  CHECK(!has_table(db, "txinbox_consumed_message"));
  CHECK(!has_table(db, "txinbox_schema"));
}

TEST_CASE("the migrations are forward only: they drop and delete nothing") {
  for (const Migration& migration : migrations(database())) {
    for (const char* word : {"DROP ", "DELETE ", "TRUNCATE "}) CHECK(migration.sql.find(word) == std::string::npos);
  }
}

}  // namespace
}  // namespace txinbox::test
