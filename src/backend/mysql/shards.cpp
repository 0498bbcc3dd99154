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

/// Whether we do not know the server. Only then can it be vtgate.
bool can_be_vtgate(const NativeConnection& sql) {
  return !parse_server_version(mysql_get_server_info(mysql_native(sql))).is_supported();
}

/// Returns the name that the connection has chosen, which vtgate answers: orders, orders:-80, or orders@primary.
std::string target_of(const NativeConnection& sql) {
  const std::string target = query_text(sql, "SELECT DATABASE()");
  return target.substr(0, target.find('@'));
}

std::string first_column(const NativeConnection& sql, const std::string& statement) {
  const auto rows = query(sql, statement, 1);
  return rows.empty() ? std::string() : rows[0][0].value_or("");
}

/// Returns the column by which the vschema shards a table. Empty if it does not.
std::string sharding_column(const NativeConnection& sql, std::string_view table) {
  try {
    return first_column(sql, fmt::format("SHOW VSCHEMA VINDEXES ON {}", table));
  } catch (const DatabaseError& error) {
    const unsigned number = mysql_number(error);
    if (number == ER_UNKNOWN_ERROR || number == ER_NO_SUCH_TABLE) return {};  // the vschema does not have it
    throw;
  }
}

}  // namespace

/// A connection to one shard, such as orders:-80, sends every statement to that shard, and this one is an error there.
///
/// A database that has only one shard so far is sharded, too: its vschema says so.
std::vector<std::string> mysql_shards(const NativeConnection& sql) {
  if (!can_be_vtgate(sql)) return {};
  std::vector<Row> rows;
  try {
    rows = query(sql, "SHOW VITESS_SHARDS", 1);
  } catch (const DatabaseError& error) {
    if (mysql_number(error) == ER_PARSE_ERROR) return {};
    throw;
  }
  const std::string database = target_of(sql);
  std::vector<std::string> found;
  for (const Row& row : rows) {
    const std::string shard = row[0].value_or("");  // such as orders/-80
    if (!shard.starts_with(database + '/')) continue;
    found.push_back(fmt::format("{}:{}", database, shard.substr(database.size() + 1)));
  }
  if (found.size() == 1 && sharding_column(sql, consumed_message_table).empty()) return {};
  return found;
}

std::string database_of_mysql_shard(const NativeConnection& sql) {
  if (!can_be_vtgate(sql)) return {};
  const std::string target = target_of(sql);
  const auto shard = target.find(':');
  return shard == std::string::npos ? std::string() : target.substr(0, shard);
}

std::vector<Problem> check_claims_in_shards(const NativeConnection& sql) {
  const auto refuse = [](std::string subject, std::string found, std::string remedy) {
    return std::vector<Problem>{
        {ErrorCode::unsafe_connection, {Severity::error, std::move(subject), std::move(found), std::move(remedy)}}};
  };
  if (const std::string database = database_of_mysql_shard(sql); !database.empty()) {
    return refuse("shard", "the connection reaches only one shard: another consumer can claim the same key elsewhere",
                  fmt::format("connect consumers to the database {}", database));
  }
  if (mysql_shards(sql).empty() || query_text(sql, "SELECT @@transaction_mode") != "MULTI") return {};
  return refuse("transaction_mode", "MULTI: a crash between two shards' commits leaves a claim without its effect",
                "SET transaction_mode = 'SINGLE'; open_pool does so");
}

void check_sharding(const NativeConnection& sql, Report& report) {
  const auto shards = mysql_shards(sql);
  if (shards.empty()) return;
  report.note(
      "shards",
      fmt::format("{} shards; migrate, purge, the relay and changes by operators work in one at a time", shards.size()),
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
