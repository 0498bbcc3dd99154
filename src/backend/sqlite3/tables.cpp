#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "backend/query.hpp"
#include "backend/sqlite3/native.hpp"
#include "backend/sqlite3/parts.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

constexpr ColumnTypes types = {
    .exact_name = {"TEXT"},
    .exact_text = {"TEXT"},
    .name = {"TEXT"},
    .text = {"TEXT"},
    .long_text = {"TEXT"},
    .state = {"TEXT"},
    .migration = {"TEXT"},
    .version = {"TEXT"},
    .hash = {"BLOB"},
    .token = {"BLOB"},
    .message_id = {"TEXT"},
    .database_id = {"BLOB"},
    .result = {"BLOB"},
    .payload = {"BLOB"},
    .integer = {"INTEGER"},
    .big_integer = {"INTEGER"},
    .sequence = {.name = "INTEGER", .is_rowid = true},
    .time = {"TEXT"},
    .insert_time = {.name = "TEXT", .has_default = true},
};

const std::vector<ExpectedTable>& tables() {
  static const std::vector<ExpectedTable> tables = expected_tables(types);
  return tables;
}

/// Returns the affinity of a declared type ("Datatypes in SQLite", section 3.1).
std::string_view affinity_of(std::string type) {
  std::ranges::transform(type, type.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto has = [&](std::string_view part) { return type.find(part) != std::string::npos; };
  if (has("INT")) return "INTEGER";
  if (has("CHAR") || has("CLOB") || has("TEXT")) return "TEXT";
  if (type.empty() || has("BLOB")) return "BLOB";
  if (has("REAL") || has("FLOA") || has("DOUB")) return "REAL";
  return "NUMERIC";
}

bool accepts(const ExpectedColumn& wanted, const FoundColumn& found) {
  const auto collation = found.type.find(" COLLATE ");
  return collation == std::string::npos && affinity_of(found.type) == wanted.type;
}

/// Returns instructions for creating the table again. SQLite cannot change a column or a key of an existing table.
std::string make_anew(std::string_view table) {
  return fmt::format(
      "ALTER TABLE {0} RENAME TO {0}_old, remove its indexes, run `txinbox migrate`, and copy the rows with INSERT "
      "INTO {0} (…) SELECT … FROM {0}_old",
      table);
}

constexpr TableDialect dialect = {
    .accepts = accepts,
    .add_column =
        [](std::string_view table, const ExpectedColumn& column) {
          return column.nullable ? fmt::format("ALTER TABLE {} ADD COLUMN {} {}", table, column.name, column.type)
                                 : make_anew(table);
        },
    .change_column = [](std::string_view table, const ExpectedColumn&) { return make_anew(table); },
    .set_primary_key = [](std::string_view table, std::string_view) { return make_anew(table); },
    .drop_index =
        [](std::string_view table, const FoundIndex& index) {
          return index.constraint ? make_anew(table) : fmt::format("DROP INDEX {}", index.name);
        },
};

/// Returns the collation in the column's declaration. SQLite uses it in WHERE.
std::string collation_of(const NativeConnection& sql, std::string_view table, const std::string& column) {
  const char* collation = nullptr;
  const int error = sqlite3_table_column_metadata(sqlite3_native(sql), "main", std::string(table).c_str(),
                                                  column.c_str(), nullptr, &collation, nullptr, nullptr, nullptr);
  return error == SQLITE_OK && collation != nullptr ? collation : "BINARY";
}

FoundTable read(const NativeConnection& sql, const ExpectedTable& expected) {
  FoundTable found;
  std::array<std::string, 8> key;
  for (const Row& row :
       query(sql,
             fmt::format("SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo('{}', 'main')",
                         expected.name),
             6)) {
    const auto key_position = static_cast<std::size_t>(number_in(row[4].value_or("")));
    const bool is_generated = number_in(row[5].value_or("")) >= 2;
    FoundColumn column{.name = row[0].value_or(""),
                       .type = row[1].value_or(""),
                       .nullable = row[2] == "0",
                       .has_default = row[3].has_value() || is_generated};
    const auto collation = collation_of(sql, expected.name, column.name);
    if (collation != "BINARY" && key_position > 0) column.type += " COLLATE " + collation;
    if (key_position > 0 && key_position <= key.size()) key[key_position - 1] = column.name;
    found.columns.push_back(std::move(column));
  }
  FoundIndex primary{.name = "the primary key", .columns = {}, .primary = true, .unique = true};
  for (const std::string& column : key) {
    if (!column.empty()) primary.columns += (primary.columns.empty() ? "" : ", ") + column;
  }
  if (!primary.columns.empty()) found.indexes.push_back(primary);

  for (const Row& row :
       query(sql,
             fmt::format("SELECT l.name, l.\"unique\", l.origin, l.partial, x.name, x.coll FROM "
                         "pragma_index_list('{}', 'main') AS l, pragma_index_xinfo(l.name, 'main') AS x "
                         "WHERE x.key = 1 ORDER BY l.seq, x.seqno",
                         expected.name),
             6)) {
    const std::string column = row[4].value_or("(an expression)");
    const std::string collation = row[5].value_or("BINARY");
    if (row[2] == "pk") {
      const auto at = std::ranges::find(found.columns, column, &FoundColumn::name);
      const bool known = at == found.columns.end() || at->type.find(" COLLATE ") != std::string::npos;
      if (collation != "BINARY" && !known) at->type += " COLLATE " + collation;
      continue;
    }
    if (found.indexes.empty() || found.indexes.back().name != row[0]) {
      found.indexes.push_back({.name = row[0].value_or(""),
                               .columns = {},
                               .unique = row[1] == "1",
                               .partial = row[3] == "1",
                               .constraint = row[2] != "c"});
    }
    auto& columns = found.indexes.back().columns;
    columns += (columns.empty() ? "" : ", ") + column;
  }
  return found;
}

}  // namespace

std::vector<Problem> check_sqlite3_tables(const NativeConnection& sql) {
  std::vector<Problem> problems;
  for (const ExpectedTable& expected : tables()) {
    const auto kind =
        query(sql, fmt::format("SELECT type, sql FROM main.sqlite_master WHERE name = '{}'", expected.name), 2);
    if (kind.empty()) {
      problems.push_back(missing_table(expected.name));
    } else if (kind.front()[0] != "table" || kind.front()[1].value_or("").starts_with("CREATE VIRTUAL")) {
      problems.push_back(not_a_table(expected.name));
    } else {
      std::ranges::move(compare(dialect, expected, read(sql, expected)), std::back_inserter(problems));
    }
  }
  return problems;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
