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
  const auto dialect = backend::database_of(*sql).dialect("");
  const std::set<int> parts = {1, 2, 3};
  const std::string select = detail::select_outbox_rows(*dialect, backend::outbox_message_table,
                                                        {.parts = parts, .after = 1'000, .limit = 500});
  std::string used;
  for (const auto& row : backend::query(*backend::connection_of(*sql), "explain " + select, 10)) {
    for (const auto& column : row) used += column.value_or("") + " ";
    used += "\n";
  }
  CAPTURE(used);
  // New versions of MySQL describe a plan in this form.
  if (used.find("Index lookup on e using txinbox_outbox_message_aggregateid") != std::string::npos) return;
  const auto subquery = used.find("DEPENDENT SUBQUERY e");
  REQUIRE(subquery != std::string::npos);
  const std::string line = used.substr(subquery, used.find('\n', subquery) - subquery);
  CHECK(line.find("PRIMARY 8") == std::string::npos);
  CHECK(line.find(" ref ") != std::string::npos);
}

}  // namespace
}  // namespace txinbox::test
