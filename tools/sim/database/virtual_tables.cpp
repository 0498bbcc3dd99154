#include "sim/database/virtual_tables.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/database/sqlite_values.hpp"

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
  const StoredRow* const row = table.table->row(number);
  if (row == nullptr) return nullptr;
  const Version& version = row->seen_by(table.view->transaction);
  return version ? &*version : nullptr;
}

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

/// How a statement finds its rows: the columns of an index that it compares for equality, and the bounds of the next
/// one.
struct Search {
  std::size_t index = 0;
  std::vector<int> equal = {};  ///< Places in `sqlite3_index_info::aConstraint`.
  std::optional<int> from = {};
  std::optional<int> to = {};
  std::optional<std::size_t> next = {};  ///< The column behind the equal ones.

  std::size_t worth() const noexcept { return 4 * equal.size() + (from ? 1 : 0) + (to ? 1 : 0); }
};

Search search_by(std::size_t index, const std::vector<std::size_t>& columns, const sqlite3_index_info& info) {
  const auto find = [&](std::size_t column, std::initializer_list<unsigned char> operators) {
    std::optional<int> found;
    for (int i = 0; i < info.nConstraint; ++i) {
      const auto& each = info.aConstraint[i];
      if (each.usable == 0 || each.iColumn != static_cast<int>(column)) continue;
      if (std::ranges::find(operators, each.op) != operators.end()) found = i;
    }
    return found;
  };
  Search search{.index = index};
  for (const std::size_t column : columns) {
    if (const auto place = find(column, {SQLITE_INDEX_CONSTRAINT_EQ})) {
      search.equal.push_back(*place);
      continue;
    }
    search.next = column;
    search.from = find(column, {SQLITE_INDEX_CONSTRAINT_GT, SQLITE_INDEX_CONSTRAINT_GE});
    search.to = find(column, {SQLITE_INDEX_CONSTRAINT_LT, SQLITE_INDEX_CONSTRAINT_LE});
    break;
  }
  return search;
}

/// The work of `filter`: the values that it gets behind those that must be equal, and whether it sorts the rows by this
/// column of the index.
constexpr int has_from = 1;
constexpr int has_to = 2;
constexpr int is_sorted = 4;
constexpr int filter_modes = 8;

/// Whether the rows of the search are in the order that the statement wants, if they are sorted by the next column.
bool gives_order(const Search& search, const sqlite3_index_info& info) {
  return info.nOrderBy == 1 && info.aOrderBy[0].desc == 0 && search.next &&
         info.aOrderBy[0].iColumn == static_cast<int>(*search.next);
}

/// Chooses the index that tells the most about the rows. Without one, all rows are read. If `filter` sorts the rows,
/// SQLite reads no more of them than the LIMIT of the statement.
int best_index(sqlite3_vtab* base, sqlite3_index_info* info) {
  const TableDefinition& definition = table_of(base).table->definition();
  Search best;
  for (std::size_t index = 0; index < definition.indexes.size(); ++index) {
    Search search = search_by(index, definition.indexes[index], *info);
    if (index == 0 || search.worth() > best.worth()) best = std::move(search);
  }
  int values = 0;
  const auto use = [&](int place) { info->aConstraintUsage[place].argvIndex = ++values; };
  std::ranges::for_each(best.equal, use);
  if (best.from) use(*best.from);
  if (best.to) use(*best.to);
  info->orderByConsumed = gives_order(best, *info) ? 1 : 0;
  info->idxNum = static_cast<int>(best.index) * filter_modes + (best.from ? has_from : 0) + (best.to ? has_to : 0) +
                 (info->orderByConsumed != 0 ? is_sorted : 0);
  info->estimatedCost = best.worth() == 0 ? 1e6 : 40.0 / static_cast<double>(best.worth());
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

int filter(sqlite3_vtab_cursor* base, int mode, const char*, int count, sqlite3_value** values) {
  Cursor& cursor = cursor_of(base);
  const VirtualTable& table = table_of(base->pVtab);
  cursor.at = 0;
  Values prefix;
  for (int i = 0; i < count; ++i) prefix.push_back(value_of(values[i]));
  const auto take_last = [&] {
    Value last = std::move(prefix.back());
    prefix.pop_back();
    return last;
  };
  Bounds bounds;
  if ((mode & has_to) != 0) bounds.to = take_last();
  if ((mode & has_from) != 0) bounds.from = take_last();
  const auto index = static_cast<std::size_t>(mode / filter_modes);
  cursor.rows = table.table->find_in_order(index, prefix, bounds, table.view->transaction);
  if ((mode & is_sorted) == 0) std::ranges::sort(cursor.rows);
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
      row.back() = found == table.defaults.end() ? text_value(view.store->now_text()) : found->second;
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
  // Without xCreate, the table has the name of its module, and exists as soon as a statement names it.
  functions.xConnect = connect;
  functions.xBestIndex = best_index;
  functions.xDisconnect = disconnect;
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

Store& store_of(sqlite3_context* context) { return *static_cast<View*>(sqlite3_user_data(context))->store; }

/// sim_now(milliseconds): the time of the server, plus these.
void now_function(sqlite3_context* context, int, sqlite3_value** values) {
  result(context, text_value(store_of(context).now_text(std::chrono::milliseconds(sqlite3_value_int64(values[0])))));
}

/// sim_since(text): the milliseconds since this time. NULL since NULL.
void since_function(sqlite3_context* context, int, sqlite3_value** values) {
  if (sqlite3_value_type(values[0]) == SQLITE_NULL) return sqlite3_result_null(context);
  sqlite3_result_int64(context, store_of(context).since(value_of(values[0]).bytes).count());
}

/// sim_mark(number): the number. `Session::change_kept` returns it.
void mark_function(sqlite3_context* context, int, sqlite3_value** values) {
  static_cast<View*>(sqlite3_user_data(context))->marked = sqlite3_value_int64(values[0]);
  sqlite3_result_value(context, values[0]);
}

/// sim_server(): the number of the running server.
void server_function(sqlite3_context* context, int, sqlite3_value**) {
  sqlite3_result_int64(context, store_of(context).server_number());
}

/// sim_writers(table): a JSON array with the names of the transactions that may have inserted rows into the table.
void writers_function(sqlite3_context* context, int, sqlite3_value** values) {
  std::string name = value_of(values[0]).bytes;
  std::erase(name, '"');
  Store& store = store_of(context);
  const Table* const table = store.find_table(name.substr(name.rfind('.') + 1));
  std::vector<std::string> names;
  for (const Transaction* const each : store.open()) {
    if (each->has_used(table)) names.push_back(fmt::format("\"{}\"", each->name));
  }
  result(context, text_value(fmt::format("[{}]", fmt::join(names, ","))));
}

}  // namespace

void add_virtual_tables(::sqlite3* connection, View& view, const std::vector<TableDefinition>& tables) {
  for (const TableDefinition& each : tables) {
    const int code =
        sqlite3_create_module_v2(connection, each.name.c_str(), &module_functions, new Module{&view, &each},
                                 [](void* module) { delete static_cast<Module*>(module); });
    if (code != SQLITE_OK) throw std::logic_error("SQLite does not take the table " + each.name);
  }
  sqlite3_create_function(connection, "sim_now", 1, SQLITE_UTF8, &view, now_function, nullptr, nullptr);
  sqlite3_create_function(connection, "sim_since", 1, SQLITE_UTF8, &view, since_function, nullptr, nullptr);
  sqlite3_create_function(connection, "sim_mark", 1, SQLITE_UTF8, &view, mark_function, nullptr, nullptr);
  sqlite3_create_function(connection, "sim_server", 0, SQLITE_UTF8, &view, server_function, nullptr, nullptr);
  sqlite3_create_function(connection, "sim_writers", 1, SQLITE_UTF8, &view, writers_function, nullptr, nullptr);
}

}  // namespace txinbox::sim
