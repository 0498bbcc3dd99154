#include "sim/database/virtual_tables.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace txinbox::sim {

namespace {

struct VirtualTable {
  sqlite3_vtab base{};  // SQLite's part must be the first
  ::sqlite3* connection;
  View* view;
  Table* table;
  std::map<std::size_t, Value> defaults;
};

struct Cursor {
  sqlite3_vtab_cursor base{};
  std::vector<std::int64_t> rows = {};
  std::size_t at = 0;
};

VirtualTable& table_of(sqlite3_vtab* table) noexcept { return *reinterpret_cast<VirtualTable*>(table); }
Cursor& cursor_of(sqlite3_vtab_cursor* cursor) noexcept { return *reinterpret_cast<Cursor*>(cursor); }

/// Null if the row has gone while an UPDATE or DELETE waited. The statement runs again then.
const Values* values_of(const VirtualTable& table, std::int64_t number) {
  const auto found = table.table->rows().find(number);
  if (found == table.table->rows().end()) return nullptr;
  const Version& version = found->second.seen_by(table.view->transaction);
  return version ? &*version : nullptr;
}

Value text(std::string value) { return {.type = Value::Type::text, .bytes = std::move(value)}; }

void result(sqlite3_context* context, const Value& value) {
  switch (value.type) {
    case Value::Type::null:
      return sqlite3_result_null(context);
    case Value::Type::integer:
      return sqlite3_result_int64(context, value.integer);
    case Value::Type::real:
      return sqlite3_result_double(context, value.real);
    case Value::Type::text:
      return sqlite3_result_text64(context, value.bytes.data(), value.bytes.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    case Value::Type::blob:
      return sqlite3_result_blob64(context, value.bytes.data(), value.bytes.size(), SQLITE_TRANSIENT);
  }
}

/// Prepares a query, and calls `take` for each row.
template <class Take>
void for_each_row(::sqlite3* connection, const std::string& sql, const Take& take) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(connection, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    throw std::logic_error(sql + ": " + sqlite3_errmsg(connection));
  }
  while (sqlite3_step(statement) == SQLITE_ROW) take(statement);
  sqlite3_finalize(statement);
}

struct Module {
  View* view;
  const TableDefinition* definition;
};

int connect(::sqlite3* connection, void* data, int, const char* const*, sqlite3_vtab** made, char**) {
  const auto& module = *static_cast<const Module*>(data);
  std::vector<std::string> quoted;
  for (const std::string& each : module.definition->columns) quoted.push_back(fmt::format("\"{}\"", each));
  const int code =
      sqlite3_declare_vtab(connection, fmt::format("CREATE TABLE x ({})", fmt::join(quoted, ", ")).c_str());
  if (code != SQLITE_OK) return code;
  sqlite3_vtab_config(connection, SQLITE_VTAB_CONSTRAINT_SUPPORT, 1);
  auto* const table =
      new VirtualTable{{}, connection, module.view, module.view->store->find_table(module.definition->name), {}};
  for (const auto& [column, sql] : module.definition->defaults) {
    if (sql.find("'now'") != std::string::npos) continue;  // it is the time of each insert
    Value& value = table->defaults[column];
    for_each_row(connection, "SELECT " + sql, [&](sqlite3_stmt* row) { value = column_of(row, 0); });
  }
  *made = &table->base;
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  delete &table_of(table);
  return SQLITE_OK;
}

/// Chooses the index of which the most columns are compared for equality. Without one, all rows are read.
int best_index(sqlite3_vtab* base, sqlite3_index_info* info) {
  const TableDefinition& definition = table_of(base).table->definition();
  std::vector<int> best;
  for (std::size_t index = 0; index < definition.indexes.size(); ++index) {
    std::vector<int> used;
    for (const std::size_t column : definition.indexes[index]) {
      int found = -1;
      for (int i = 0; i < info->nConstraint; ++i) {
        const auto& each = info->aConstraint[i];
        if (each.usable != 0 && each.op == SQLITE_INDEX_CONSTRAINT_EQ && each.iColumn == static_cast<int>(column)) {
          found = i;
        }
      }
      if (found < 0) break;
      used.push_back(found);
    }
    if (used.size() > best.size()) {
      best = used;
      info->idxNum = static_cast<int>(index);
    }
  }
  for (std::size_t i = 0; i < best.size(); ++i) {
    info->aConstraintUsage[best[i]].argvIndex = static_cast<int>(i) + 1;
  }
  info->estimatedCost = best.empty() ? 1e6 : 10.0 / static_cast<double>(best.size());
  return SQLITE_OK;
}

int open(sqlite3_vtab*, sqlite3_vtab_cursor** made) {
  *made = &(new Cursor())->base;
  return SQLITE_OK;
}

int close(sqlite3_vtab_cursor* cursor) {
  delete &cursor_of(cursor);
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* base, int index, const char*, int count, sqlite3_value** values) {
  Cursor& cursor = cursor_of(base);
  const VirtualTable& table = table_of(base->pVtab);
  cursor.at = 0;
  cursor.rows.clear();
  if (count == 0) {
    for (const auto& [number, row] : table.table->rows()) cursor.rows.push_back(number);
  } else {
    Values prefix;
    for (int i = 0; i < count; ++i) prefix.push_back(value_of(values[i]));
    cursor.rows = table.table->find(static_cast<std::size_t>(index), prefix);
  }
  std::erase_if(cursor.rows, [&](std::int64_t number) { return values_of(table, number) == nullptr; });
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* cursor) {
  ++cursor_of(cursor).at;
  return SQLITE_OK;
}

int eof(sqlite3_vtab_cursor* cursor) { return cursor_of(cursor).at >= cursor_of(cursor).rows.size() ? 1 : 0; }

int column(sqlite3_vtab_cursor* base, sqlite3_context* context, int number) {
  if (sqlite3_vtab_nochange(context) != 0) return SQLITE_OK;
  const Cursor& cursor = cursor_of(base);
  const Values* const values = values_of(table_of(base->pVtab), cursor.rows[cursor.at]);
  if (values != nullptr) result(context, (*values)[static_cast<std::size_t>(number)]);
  return SQLITE_OK;
}

int rowid(sqlite3_vtab_cursor* cursor, sqlite3_int64* number) {
  *number = cursor_of(cursor).rows[cursor_of(cursor).at];
  return SQLITE_OK;
}

Store::OnDuplicate on_duplicate(::sqlite3* connection) {
  switch (sqlite3_vtab_on_conflict(connection)) {
    case SQLITE_IGNORE:
      return Store::OnDuplicate::ignore;
    case SQLITE_REPLACE:
      return Store::OnDuplicate::replace;
    default:
      return Store::OnDuplicate::fail;
  }
}

/// Deletes (one value), inserts (the first value is NULL) or updates.
int update(sqlite3_vtab* base, int count, sqlite3_value** values, sqlite3_int64*) {
  VirtualTable& table = table_of(base);
  View& view = *table.view;
  try {
    if (view.transaction == nullptr) throw std::logic_error("a change without a transaction");
    if (count == 1) {
      view.store->remove(*view.transaction, *table.table, sqlite3_value_int64(values[0]));
      ++view.changed;
      return SQLITE_OK;
    }
    const bool is_insert = sqlite3_value_type(values[0]) == SQLITE_NULL;
    const std::int64_t number = is_insert ? 0 : sqlite3_value_int64(values[0]);
    Values row;
    for (int i = 2; i < count; ++i) {
      const auto column = static_cast<std::size_t>(i) - 2;
      if (sqlite3_value_nochange(values[i]) != 0) {
        const Values* const old = values_of(table, number);
        if (old == nullptr) throw RowChanged();
        row.push_back((*old)[column]);
        continue;
      }
      row.push_back(value_of(values[i]));
      if (!is_insert || !row.back().is_null() || !table.table->definition().defaults.contains(column)) continue;
      const auto found = table.defaults.find(column);
      row.back() = found == table.defaults.end() ? text(view.store->now_text()) : found->second;
    }
    if (is_insert) {
      if (view.store->insert(*view.transaction, *table.table, std::move(row), on_duplicate(table.connection))) {
        ++view.changed;
      }
    } else {
      view.store->update(*view.transaction, *table.table, number, std::move(row));
      ++view.changed;
    }
    return SQLITE_OK;
  } catch (...) {
    view.error = std::current_exception();
    return SQLITE_ABORT;
  }
}

constexpr sqlite3_module module_functions = [] {
  sqlite3_module functions{};
  functions.iVersion = 1;
  functions.xCreate = connect;
  functions.xConnect = connect;
  functions.xBestIndex = best_index;
  functions.xDisconnect = disconnect;
  functions.xDestroy = disconnect;
  functions.xOpen = open;
  functions.xClose = close;
  functions.xFilter = filter;
  functions.xNext = next;
  functions.xEof = eof;
  functions.xColumn = column;
  functions.xRowid = rowid;
  functions.xUpdate = update;
  return functions;
}();

}  // namespace

Value value_of(sqlite3_value* value) {
  const auto bytes = [value](const void* data) {
    return std::string(static_cast<const char*>(data), static_cast<std::size_t>(sqlite3_value_bytes(value)));
  };
  switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
      return {.type = Value::Type::integer, .integer = sqlite3_value_int64(value)};
    case SQLITE_FLOAT:
      return {.type = Value::Type::real, .real = sqlite3_value_double(value)};
    case SQLITE_TEXT:
      return text(bytes(sqlite3_value_text(value)));
    case SQLITE_BLOB:
      return {.type = Value::Type::blob, .bytes = bytes(sqlite3_value_blob(value))};
    default:
      return {};
  }
}

Value column_of(sqlite3_stmt* statement, int column) {
  const auto bytes = [&](const void* data) {
    return std::string(static_cast<const char*>(data),
                       static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
  };
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return {.type = Value::Type::integer, .integer = sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return {.type = Value::Type::real, .real = sqlite3_column_double(statement, column)};
    case SQLITE_TEXT:
      return text(bytes(sqlite3_column_text(statement, column)));
    case SQLITE_BLOB:
      return {.type = Value::Type::blob, .bytes = bytes(sqlite3_column_blob(statement, column))};
    default:
      return {};
  }
}

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
  for (const auto& [place, column] : key) table.primary_key.push_back(column);
  if (key.size() != 1) table.number.reset();
  table.indexes.push_back(table.primary_key);
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

Store& store_of(sqlite3_context* context) { return *static_cast<View*>(sqlite3_user_data(context))->store; }

/// sim_now(milliseconds): the time of the server, plus these.
void now_function(sqlite3_context* context, int, sqlite3_value** values) {
  result(context, text(store_of(context).now_text(std::chrono::milliseconds(sqlite3_value_int64(values[0])))));
}

/// sim_since(text): the milliseconds since this time. NULL since NULL.
void since_function(sqlite3_context* context, int, sqlite3_value** values) {
  if (sqlite3_value_type(values[0]) == SQLITE_NULL) return sqlite3_result_null(context);
  sqlite3_result_int64(context, store_of(context).since(value_of(values[0]).bytes).count());
}

/// sim_mark(number): the number. `Session::change_returning` returns it.
void mark_function(sqlite3_context* context, int, sqlite3_value** values) {
  static_cast<View*>(sqlite3_user_data(context))->marked = sqlite3_value_int64(values[0]);
  sqlite3_result_value(context, values[0]);
}

}  // namespace

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

void add_virtual_tables(::sqlite3* connection, View& view, const std::vector<TableDefinition>& tables) {
  for (const TableDefinition& each : tables) {
    const std::string name = "sim_" + each.name;
    sqlite3_create_module_v2(connection, name.c_str(), &module_functions, new Module{&view, &each},
                             [](void* module) { delete static_cast<Module*>(module); });
    const std::string sql = fmt::format("CREATE VIRTUAL TABLE main.\"{}\" USING \"{}\"", each.name, name);
    if (sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
      throw std::logic_error(sql + ": " + sqlite3_errmsg(connection));
    }
  }
  sqlite3_create_function(connection, "sim_now", 1, SQLITE_UTF8, &view, now_function, nullptr, nullptr);
  sqlite3_create_function(connection, "sim_since", 1, SQLITE_UTF8, &view, since_function, nullptr, nullptr);
  sqlite3_create_function(connection, "sim_mark", 1, SQLITE_UTF8, &view, mark_function, nullptr, nullptr);
}

}  // namespace txinbox::sim
