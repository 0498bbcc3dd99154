// Vitess: the shards behind vtgate, and how its vschema spreads the rows of the tables over them.

#include "backend/mysql/parts.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <mysqld_error.h>

#include "backend/mysql/flavour.hpp"
#include "backend/mysql/native.hpp"
#include "backend/query.hpp"
#include "backend/report.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

/// A table whose rows must lie in the shard of the transaction that writes them.
struct ShardedTable {
  std::string_view name;
  std::string_view column;  ///< The column that must decide in which shard a row lies.
  std::string_view otherwise;
};

constexpr std::array sharded_tables = {
    ShardedTable{consumed_message_table, "business_key", "two deliveries of one key can lie in two shards"},
    ShardedTable{failed_message_table, "business_key", "a failure cannot be recorded with its message"},
    ShardedTable{conflicting_message_table, "business_key", "a conflict cannot be recorded with its message"},
    ShardedTable{outbox_message_table, "aggregateid", "a handler cannot add messages in its own transaction"}};

/// Returns no rows if the server does not know this statement of vtgate.
std::vector<Row> ask_vtgate(const NativeConnection& sql, const std::string& statement, std::size_t columns) {
  try {
    return query(sql, statement, columns);
  } catch (const DatabaseError& error) {
    const unsigned number = mysql_number(error);
    if (number == ER_PARSE_ERROR || number == ER_UNKNOWN_ERROR || number == ER_NO_SUCH_TABLE) return {};
    throw;
  }
}

/// Returns the column by which the vschema shards a table. Empty if it does not.
std::string sharding_column(const NativeConnection& sql, std::string_view table) {
  const auto vindexes = ask_vtgate(sql, fmt::format("SHOW VSCHEMA VINDEXES ON {}", table), 1);
  return vindexes.empty() ? std::string() : vindexes[0][0].value_or("");
}

}  // namespace

/// A connection to one shard, such as orders:-80, sends every statement to that shard, and this one is an error there.
///
/// A database that has only one shard so far is sharded, too: its vschema says so.
std::vector<std::string> mysql_shards(const NativeConnection& sql) {
  if (parse_server_version(mysql_get_server_info(mysql_native(sql))).is_supported()) return {};
  const auto rows = ask_vtgate(sql, "SHOW VITESS_SHARDS", 1);
  if (rows.empty()) return {};
  const std::string database = query_text(sql, "SELECT DATABASE()");
  std::vector<std::string> found;
  for (const Row& row : rows) {
    const std::string shard = row[0].value_or("");  // such as orders/-80
    if (!shard.starts_with(database + '/')) continue;
    found.push_back(fmt::format("{}:{}", database, shard.substr(database.size() + 1)));
  }
  if (found.size() == 1 && sharding_column(sql, consumed_message_table).empty()) return {};
  return found;
}

void check_sharding(const NativeConnection& sql, Report& report) {
  const auto shards = mysql_shards(sql);
  if (shards.empty()) return;
  report.note(
      "shards",
      fmt::format("{}: migrate, purge, the relay and changes by operators work in one shard at a time", shards.size()),
      fmt::format("connect them to each of the databases {}", fmt::join(shards, ", ")));
  for (const ShardedTable& table : sharded_tables) {
    const std::string column = sharding_column(sql, table.name);
    if (column == table.column) continue;
    report.fail(std::string(table.name),
                column.empty() ? fmt::format("the vschema does not shard it: {}", table.otherwise)
                               : fmt::format("the vschema shards it by {}: {}", column, table.otherwise),
                fmt::format("shard it by {}, as ops/vitess/vschema.json does", table.column));
  }
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
