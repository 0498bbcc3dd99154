#include <fmt/format.h>

#include <algorithm>

#include "backend/mysql/native.hpp"
#include "backend/mysql/parts.hpp"
#include "backend/query.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

constexpr ColumnTypes types = {
    .exact_name = {"VARBINARY(64)"},
    .exact_text = {"VARBINARY(255)"},
    .name = {"VARBINARY(64)"},
    .text = {"VARBINARY(255)"},
    .long_text = {"BLOB"},
    .state = {"VARCHAR(16)"},
    .migration = {"VARCHAR(100)"},
    .version = {"VARCHAR(20)"},
    .hash = {"VARBINARY(32)"},
    .token = {"VARBINARY(16)"},
    .message_id = {"VARBINARY(36)"},
    .database_id = {"BINARY(16)"},
    .result = {"MEDIUMBLOB"},
    .payload = {"LONGBLOB"},
    .integer = {"INT"},
    .big_integer = {"BIGINT"},
    .sequence = {.name = "BIGINT", .has_default = true},
    .time = {"DATETIME(6)"},
    .insert_time = {"DATETIME(6)"},
};

const std::vector<ExpectedTable>& tables() {
  static const std::vector<ExpectedTable> tables = expected_tables(types);
  return tables;
}

/// Whether the found type is the same type, or a wider one. The size of an integer is ignored: it changes only the
/// display.
bool accepts(const ExpectedColumn& wanted, const FoundColumn& found) {
  const auto want = parts_of(wanted.type);
  const auto have = parts_of(found.type);
  if (want.base == "int" || want.base == "bigint") return have.base == want.base || have.base == "bigint";
  if (want.base == "blob") return have.base == "blob" || have.base == "mediumblob" || have.base == "longblob";
  if (want.base == "mediumblob") return have.base == "mediumblob" || have.base == "longblob";
  if (want.base == "longblob") return have.base == want.base;
  return have.base == want.base && have.size.value_or(0) >= want.size.value_or(0);
}

constexpr TableDialect dialect = {
    .accepts = accepts,
    .add_column =
        [](std::string_view table, const ExpectedColumn& column) {
          return fmt::format("ALTER TABLE {} ADD COLUMN {} {}", table, column.name, definition_of(column));
        },
    .change_column =
        [](std::string_view table, const ExpectedColumn& column) {
          return fmt::format("ALTER TABLE {} MODIFY COLUMN {} {}", table, column.name, definition_of(column));
        },
    .set_primary_key = add_primary_key,
    .drop_index =
        [](std::string_view table, const FoundIndex& index) {
          return fmt::format("ALTER TABLE {} DROP INDEX {}", table, index.name);
        },
};

/// Returns one SELECT for each table. With an equality the server opens only one table; with IN it opens all tables.
/// The LIMIT is necessary, because otherwise sql_select_limit applies.
std::string for_each_table(std::string_view select, std::string_view order) {
  std::string text;
  for (const ExpectedTable& table : tables()) {
    if (!text.empty()) text += " UNION ALL ";
    text += fmt::format(fmt::runtime(select), fmt::arg("table", table.name));
  }
  return fmt::format("{} ORDER BY {} LIMIT 1000000", text, order);
}

struct Found {
  std::string kind, engine;
  FoundTable table;
};

std::map<std::string, Found> read(const NativeConnection& sql) {
  std::map<std::string, Found> found;
  for (const Row& row :
       query(sql,
             for_each_table("SELECT '{table}', t.TABLE_TYPE, t.ENGINE, c.COLUMN_NAME, c.COLUMN_TYPE, c.COLLATION_NAME, "
                            "c.IS_NULLABLE, c.COLUMN_DEFAULT IS NOT NULL OR c.EXTRA LIKE '%GENERATED%' OR "
                            "c.EXTRA LIKE '%auto_increment%', c.ORDINAL_POSITION "
                            "FROM information_schema.TABLES t JOIN information_schema.COLUMNS c "
                            "ON c.TABLE_SCHEMA = DATABASE() AND c.TABLE_NAME = '{table}' "
                            "WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME = '{table}'",
                            "1, 9"),
             9)) {
    Found& table = found[row[0].value_or("")];
    table.kind = row[1].value_or("");
    table.engine = row[2].value_or("");
    table.table.columns.push_back({.name = row[3].value_or(""),
                                   .type = row[4].value_or("") + (row[5] ? " COLLATE " + *row[5] : ""),
                                   .nullable = row[6] == "YES",
                                   .has_default = row[7] == "1"});
  }
  for (const Row& row :
       query(sql,
             for_each_table("SELECT '{table}', INDEX_NAME, NON_UNIQUE, COLUMN_NAME, SUB_PART, SEQ_IN_INDEX "
                            "FROM information_schema.STATISTICS "
                            "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '{table}'",
                            "1, 2, 6"),
             6)) {
    auto& indexes = found[row[0].value_or("")].table.indexes;
    if (indexes.empty() || indexes.back().name != row[1]) {
      const auto name = row[1].value_or("");
      indexes.push_back({.name = name, .columns = {}, .primary = name == "PRIMARY", .unique = row[2] == "0"});
    }
    auto& columns = indexes.back().columns;
    columns += (columns.empty() ? "" : ", ") + row[3].value_or("(an expression)");
    if (row[4]) columns += fmt::format("({})", *row[4]);
  }
  return found;
}

}  // namespace

std::vector<Problem> check_mysql_tables(const NativeConnection& sql) {
  std::vector<Problem> problems;
  auto found = read(sql);
  for (const ExpectedTable& expected : tables()) {
    const auto at = found.find(std::string(expected.name));
    if (at == found.end()) {
      problems.push_back(missing_table(expected.name));
      continue;
    }
    const Found& table = at->second;
    if (table.kind != "BASE TABLE" && table.kind != "SYSTEM VERSIONED") {
      problems.push_back(not_a_table(expected.name));
      continue;
    }
    if (table.engine != "InnoDB") {
      problems.push_back(mismatch(std::string(expected.name),
                                  fmt::format("its engine is {}, which has no transactions", table.engine),
                                  fmt::format("ALTER TABLE {} ENGINE = InnoDB", expected.name)));
    }
    std::ranges::move(compare(dialect, expected, table.table), std::back_inserter(problems));
  }
  return problems;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
