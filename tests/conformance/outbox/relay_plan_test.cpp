// How a server looks for earlier messages of a key: with the index on the key, even if the statistics of the table are
// old, and once for each key of a batch.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>

#include "backend/query.hpp"
#include "backend/registry.hpp"
#include "backend/table_check.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "support/recording_publisher.hpp"
#include "support/relay_kit.hpp"
#include "tables/outbox_message_table.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("the server finds earlier messages of a key with the index on the key" * doctest::skip(!on_mysql())) {
  const TestDatabase db;
  db.run("alter table txinbox_outbox_message stats_auto_recalc = 0");
  for (int key = 0; key < 20; ++key) add(db, "k" + std::to_string(key), std::vector<std::string>(200, "x"));
  const auto sql = db.session();
  const std::string session_status =
      on_mariadb() ? "information_schema.session_status" : "performance_schema.session_status";
  const auto dialect = backend::database_of(*sql).dialect("");
  const std::set<int> parts = {1, 2, 3};
  const std::string select = detail::select_outbox_rows(*dialect, backend::outbox_message_table,
                                                        {.parts = parts, .after = 1'000, .limit = 500});
  const auto rows_read = [&] {
    return std::stoll(backend::query_text(
        *backend::connection_of(*sql),
        "select sum(variable_value) from " + session_status + " where variable_name like 'Handler_read%'"));
  };
  const long long before = rows_read();
  (void)backend::query(*backend::connection_of(*sql), select, 9);
  // About 8,000: the rows of the batch, and the tables in which the server keeps them in between.
  CHECK(rows_read() - before < 10'000);
}

// While another transaction has a snapshot, the server cannot clean up behind removed rows: each look for earlier rows
// of the key reads them.
TEST_CASE("a batch with many messages of a key passes the removed rows of the key once" *
          doctest::skip(!on_postgresql())) {
  const TestDatabase db;
  add(db, "k", std::vector<std::string>(2'100, "x"));
  const auto snapshot = db.session();
  *snapshot << "begin isolation level repeatable read";
  long long rows = 0;
  *snapshot << "select count(*) from txinbox_outbox_message", soci::into(rows);
  REQUIRE(rows == 2'100);
  const long long last = db.number("select max(seq) - 100 from txinbox_outbox_message");
  db.run("delete from txinbox_outbox_message where seq <= " + std::to_string(last));

  const auto sql = db.session();
  const auto dialect = backend::database_of(*sql).dialect("");
  const std::set<int> parts = {detail::outbox_part("k", "")};
  const std::string select = detail::select_outbox_rows(*dialect, backend::outbox_message_table,
                                                        {.parts = parts, .after = last, .limit = 100});
  long long pages = -1;
  const std::string_view hits = "shared hit=";
  for (const auto& row : backend::query(*backend::connection_of(*sql), "explain (analyze, buffers) " + select, 1)) {
    const auto at = row[0]->find(hits);
    if (at != std::string::npos && pages < 0)
      pages = std::stoll(row[0]->substr(at + hits.size()));  // of the whole plan
  }
  CHECK(pages > 0);
  CHECK(pages < 1'000);  // about 400; more than 4,000 if each message looks
}

}  // namespace
}  // namespace txinbox::test
