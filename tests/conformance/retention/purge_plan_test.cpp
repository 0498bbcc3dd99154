// The databases find old rows with the index on the time, even if there are many young rows.

#include <chrono>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "backend/query.hpp"
#include "backend/registry.hpp"
#include "retention/purge_target.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "support/old_rows.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// How many rows the server has read for this session since the last call. Only for MariaDB and MySQL.
long long rows_read(soci::session& sql) {
  long long read = 0;
  for (const auto& row : backend::query(*backend::connection_of(sql), "show session status like 'Handler_read%'", 2)) {
    read += backend::number_in(row[1].value_or(""));
  }
  sql << "flush status";
  return read;
}

TEST_CASE("a purge reads the rows that it removes and few other rows" * doctest::skip(!on_mysql())) {
  const OldRows db;
  db.add("svc", 20'000, 1h);
  db.add("svc", 60, 25h);
  db.run("analyze table txinbox_consumed_message");
  const auto sql = db.session();
  CHECK(purge(*sql, 24h) == 60);  // this first call also reads the catalog, to verify the tables
  db.add("svc", 60, 25h);
  CHECK(purge(*sql, 24h) == 60);
  rows_read(*sql);
  db.add("svc", 60, 25h);
  CHECK(purge(*sql, 24h) == 60);
  CHECK(rows_read(*sql) < 5'000);
}

TEST_CASE("an index gives the old rows in order, from the end of the last batch" * doctest::skip(!on_sqlite3())) {
  const OldRows db;
  const auto sql = db.session();
  const auto dialect = backend::database_of(*sql).dialect("");
  for (const auto purge : {Purgeable::consumed, Purgeable::failed, Purgeable::conflicts}) {
    const auto target = detail::purge_targets(purge, *dialect, "svc").front();
    const backend::PurgeBatch batch{
        .target = target, .older_than = 24h, .limit = 10, .window = 10, .after = fmt::format("{} >= 'x'", target.time)};
    std::string plan;
    for (const auto& row :
         backend::query(*backend::connection_of(*sql),
                        "explain query plan " + backend::look_sql(*dialect, batch, std::string(target.time)), 4)) {
      plan += row[3].value_or("") + "\n";
    }
    CAPTURE(plan);
    CHECK(plan.find(fmt::format("INDEX {}_{} ", target.table, target.time)) != std::string::npos);
    CHECK(plan.find("TEMP B-TREE") == std::string::npos);
  }
}

}  // namespace
}  // namespace txinbox::test
