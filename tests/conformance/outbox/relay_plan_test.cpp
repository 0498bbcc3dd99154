// A relay finds earlier messages of a key with the index on the key, even if the statistics of the table are old.

#include <set>
#include <string>
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
  // About 3,000 with the index on the key. With the primary key, about 500 more for each of the 60 rows.
  CHECK(rows_read() - before < 10'000);
}

}  // namespace
}  // namespace txinbox::test
