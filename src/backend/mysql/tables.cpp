#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backend/mysql/catalog.hpp"
#include "backend/mysql/native.hpp"
#include "backend/query.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

constexpr std::array consumed_message_columns = {
    ExpectedColumn{"consumer", "VARBINARY(64)", false},
    ExpectedColumn{"business_key", "VARBINARY(255)", false},
    ExpectedColumn{"message_id", "VARBINARY(255)"},
    ExpectedColumn{"content_hash", "VARBINARY(32)"},
    ExpectedColumn{"state", "VARCHAR(16)", false},
    ExpectedColumn{"attempt_token", "VARBINARY(16)", false},
    ExpectedColumn{"lease_owner", "VARBINARY(64)"},
    ExpectedColumn{"lease_fence", "BIGINT"},
    ExpectedColumn{"lease_expires_at", "DATETIME(6)"},
    ExpectedColumn{"attempts", "INT"},
    ExpectedColumn{"result", "MEDIUMBLOB"},
    ExpectedColumn{"consumed_at", "DATETIME(6)", false},
};
constexpr std::array schema_columns = {
    ExpectedColumn{"version", "INT", false},
    ExpectedColumn{"name", "VARCHAR(100)", false},
    ExpectedColumn{"oldest_library", "VARCHAR(20)", false},
    ExpectedColumn{"applied_at", "DATETIME(6)", false},
};
constexpr std::array failed_message_columns = {
    ExpectedColumn{"consumer", "VARBINARY(64)", false},
    ExpectedColumn{"business_key", "VARBINARY(255)", false},
    ExpectedColumn{"message_id", "VARBINARY(255)"},
    ExpectedColumn{"attempts", "INT", false, true},
    ExpectedColumn{"crashes", "INT", false, true},
    ExpectedColumn{"first_error", "VARBINARY(255)"},
    ExpectedColumn{"first_failed_at", "DATETIME(6)"},
    ExpectedColumn{"last_error", "VARBINARY(255)"},
    ExpectedColumn{"last_failed_at", "DATETIME(6)"},
    ExpectedColumn{"error_text", "BLOB"},
    ExpectedColumn{"payload", "LONGBLOB"},
    ExpectedColumn{"running_token", "VARBINARY(16)"},
    ExpectedColumn{"running_since", "DATETIME(6)"},
    ExpectedColumn{"running_alone", "INT"},
};
constexpr std::array conflicting_message_columns = {
    ExpectedColumn{"consumer", "VARBINARY(64)", false},     ExpectedColumn{"business_key", "VARBINARY(255)", false},
    ExpectedColumn{"content_hash", "VARBINARY(32)", false}, ExpectedColumn{"original_hash", "VARBINARY(32)", false},
    ExpectedColumn{"message_id", "VARBINARY(255)"},         ExpectedColumn{"original_message_id", "VARBINARY(255)"},
    ExpectedColumn{"reason", "VARBINARY(64)", false},       ExpectedColumn{"deliveries", "INT", false},
    ExpectedColumn{"first_at", "DATETIME(6)", false},       ExpectedColumn{"last_at", "DATETIME(6)", false},
};
constexpr std::array consumer_columns = {
    ExpectedColumn{"consumer", "VARBINARY(64)", false},
    ExpectedColumn{"duplicates", "BIGINT", false, true},
    ExpectedColumn{"oldest_duplicate", "BIGINT"},
    ExpectedColumn{"oldest_duplicate_at", "DATETIME(6)"},
    ExpectedColumn{"retention", "BIGINT"},
    ExpectedColumn{"purged", "BIGINT", false, true},
    ExpectedColumn{"purged_at", "DATETIME(6)"},
};
constexpr std::array outbox_message_columns = {
    ExpectedColumn{"seq", "BIGINT", false, true},
    ExpectedColumn{"id", "VARBINARY(36)", false},
    ExpectedColumn{"aggregatetype", "VARBINARY(255)", false},
    ExpectedColumn{"aggregateid", "VARBINARY(255)", false},
    ExpectedColumn{"type", "VARBINARY(255)", false},
    ExpectedColumn{"payload", "LONGBLOB", false},
    ExpectedColumn{"headers", "BLOB"},
    ExpectedColumn{"part", "INT", false},
    ExpectedColumn{"attempts", "INT", false, true},
    ExpectedColumn{"last_error", "BLOB"},
    ExpectedColumn{"parked_at", "DATETIME(6)"},
    ExpectedColumn{"created_at", "DATETIME(6)", false},
};
constexpr std::array outbox_relay_columns = {
    ExpectedColumn{"token", "VARBINARY(16)", false},
    ExpectedColumn{"name", "VARBINARY(64)", false},
    ExpectedColumn{"started_at", "DATETIME(6)", false},
    ExpectedColumn{"lease_expires_at", "DATETIME(6)", false},
};
constexpr std::array outbox_part_columns = {
    ExpectedColumn{"part", "INT", false},
    ExpectedColumn{"owner", "VARBINARY(16)"},
};
constexpr std::array outbox_database_columns = {
    ExpectedColumn{"one", "INT", false},
    ExpectedColumn{"id", "BINARY(16)", false},
};
constexpr auto tables = expected_tables({.consumed_message = consumed_message_columns,
                                         .schema = schema_columns,
                                         .failed_message = failed_message_columns,
                                         .conflicting_message = conflicting_message_columns,
                                         .consumer = consumer_columns,
                                         .outbox_message = outbox_message_columns,
                                         .outbox_relay = outbox_relay_columns,
                                         .outbox_part = outbox_part_columns,
                                         .outbox_database = outbox_database_columns});

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
std::string for_each_table(std::string_view select, const std::string& schema, std::string_view order) {
  std::string text;
  for (const ExpectedTable& table : tables) {
    if (!text.empty()) text += " UNION ALL ";
    text += fmt::format(fmt::runtime(select), fmt::arg("schema", hex_literal(schema)), fmt::arg("table", table.name));
  }
  return fmt::format("{} ORDER BY {}", text, order);
}

struct Found {
  std::string kind, engine;
  FoundTable table;
};

std::map<std::string, Found> read(const NativeConnection& sql, const std::string& schema) {
  std::map<std::string, Found> found;
  for (const Row& row :
       query(sql,
             for_each_table("SELECT '{table}', t.TABLE_TYPE, t.ENGINE, c.COLUMN_NAME, c.COLUMN_TYPE, c.COLLATION_NAME, "
                            "c.IS_NULLABLE, c.COLUMN_DEFAULT IS NOT NULL OR c.EXTRA LIKE '%GENERATED%' OR "
                            "c.EXTRA LIKE '%auto_increment%', c.ORDINAL_POSITION "
                            "FROM information_schema.TABLES t JOIN information_schema.COLUMNS c "
                            "ON c.TABLE_SCHEMA = {schema} AND c.TABLE_NAME = '{table}' "
                            "WHERE t.TABLE_SCHEMA = {schema} AND t.TABLE_NAME = '{table}'",
                            schema, "1, 9"),
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
                            "WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = '{table}'",
                            schema, "1, 2, 6"),
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

std::vector<Problem> check_mysql_tables(const NativeConnection& sql, const std::string& schema) {
  std::vector<Problem> problems;
  auto found = read(sql, schema);
  for (const ExpectedTable& expected : tables) {
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
