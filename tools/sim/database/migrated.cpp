#include "sim/database/migrated.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>
#include <sqlite3.h>
#include <txinbox/native.hpp>
#include <txinbox/schema.hpp>

#include "sim/database/sqlite_values.hpp"

namespace txinbox::sim {

namespace {

std::string text_of(sqlite3_stmt* row, int column) { return column_of(row, column).bytes; }

/// The columns of an index.
std::vector<std::size_t> columns_of(::sqlite3* connection, const std::string& index) {
  std::vector<std::size_t> columns;
  for_each_row(connection, fmt::format("PRAGMA index_info('{}')", index),
               [&](sqlite3_stmt* row) { columns.push_back(static_cast<std::size_t>(sqlite3_column_int64(row, 1))); });
  return columns;
}

TableDefinition definition_of(::sqlite3* connection, const std::string& name) {
  TableDefinition table{.name = name};
  std::map<std::int64_t, std::size_t> key;  // by the place in the primary key
  for_each_row(connection, fmt::format("PRAGMA table_info('{}')", name), [&](sqlite3_stmt* row) {
    const std::size_t column = table.columns.size();
    table.columns.push_back(text_of(row, 1));
    if (sqlite3_column_type(row, 4) != SQLITE_NULL) table.defaults[column] = text_of(row, 4);
    if (const auto place = sqlite3_column_int64(row, 5); place > 0) key[place] = column;
    if (key.size() == 1 && key.begin()->second == column && text_of(row, 2) == "INTEGER") table.number = column;
  });
  if (key.size() != 1) table.number.reset();
  auto& primary = table.indexes.emplace_back();
  for (const auto& [place, column] : key) primary.push_back(column);
  std::vector<std::vector<std::size_t>> others;
  for_each_row(connection, fmt::format("PRAGMA index_list('{}')", name), [&](sqlite3_stmt* row) {
    const bool is_unique = sqlite3_column_int64(row, 2) != 0;
    const bool is_partial = sqlite3_column_int64(row, 4) != 0;
    if (is_partial || text_of(row, 3) == "pk") return;
    (is_unique ? table.indexes : others).push_back(columns_of(connection, text_of(row, 1)));
  });
  table.unique_indexes = table.indexes.size();
  table.indexes.insert(table.indexes.end(), others.begin(), others.end());
  return table;
}

Migrated read_migrated(::sqlite3* connection) {
  Migrated migrated;
  for_each_row(connection, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'",
               [&](sqlite3_stmt* row) { migrated.tables.push_back(definition_of(connection, text_of(row, 0))); });
  for (const TableDefinition& table : migrated.tables) {
    for_each_row(connection, fmt::format("SELECT * FROM \"{}\"", table.name), [&](sqlite3_stmt* row) {
      Values values;
      for (std::size_t i = 0; i < table.columns.size(); ++i) values.push_back(column_of(row, static_cast<int>(i)));
      migrated.rows.emplace_back(table.name, std::move(values));
    });
  }
  return migrated;
}

}  // namespace

Migrated make_migrated() {
  ::sqlite3* connection = nullptr;
  if (sqlite3_open(":memory:", &connection) != SQLITE_OK) throw std::runtime_error("SQLite has no memory");
  const std::unique_ptr<::sqlite3, decltype(&sqlite3_close_v2)> closes(connection, sqlite3_close_v2);
  migrate(connection);
  // The migration chooses a random id of the database, and another time. A seed must always give the same world.
  constexpr auto more =
      "CREATE TABLE effect (number INTEGER PRIMARY KEY, business_key TEXT NOT NULL);"
      "CREATE INDEX effect_business_key ON effect (business_key);"
      "UPDATE txinbox_outbox_database SET id = x'00112233445566778899aabbccddeeff';"
      "UPDATE txinbox_schema SET applied_at = '2026-01-01 00:00:00.000000'";
  if (sqlite3_exec(connection, more, nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw std::runtime_error("the tables of the simulation cannot be made");
  }
  return read_migrated(connection);
}

}  // namespace txinbox::sim
