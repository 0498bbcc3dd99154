#pragma once

// Compares the tables in the database with the tables that the migrations create.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/problem.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

inline constexpr std::string_view consumed_message_table = "txinbox_consumed_message";
inline constexpr std::string_view schema_table = "txinbox_schema";
inline constexpr std::string_view failed_message_table = "txinbox_failed_message";
inline constexpr std::string_view conflicting_message_table = "txinbox_conflicting_message";
inline constexpr std::string_view consumer_table = "txinbox_consumer";
inline constexpr std::string_view outbox_message_table = "txinbox_outbox_message";
inline constexpr std::string_view outbox_relay_table = "txinbox_outbox_relay";
inline constexpr std::string_view outbox_part_table = "txinbox_outbox_part";
inline constexpr std::string_view outbox_database_table = "txinbox_outbox_database";

/// The tables of the inbox in which a consumer can have rows.
inline constexpr std::array inbox_tables{consumed_message_table, failed_message_table, conflicting_message_table,
                                         consumer_table};

/// PostgreSQL: the name of the trigger on the consumed-message table.
inline constexpr std::string_view guard_trigger = "txinbox_guard";

struct ExpectedColumn {
  std::string_view name;
  std::string_view type;  ///< The type as the migration declares it.
  bool nullable = true;
  bool has_default = false;
};

struct ExpectedTable {
  std::string_view name;
  std::span<const ExpectedColumn> columns;
  std::string_view primary_key;         ///< For example "a, b".
  std::string_view retention_column;    ///< The first column of an index that must exist. Empty if no such index must
                                        ///< exist.
  std::string_view unique_column = {};  ///< A column that must have a unique index besides the primary key. Empty if
                                        ///< there is none.
};

/// The columns of each table, with the types of one database.
struct ExpectedColumns {
  std::span<const ExpectedColumn> consumed_message, schema, failed_message, conflicting_message, consumer,
      outbox_message, outbox_relay, outbox_part, outbox_database;
};

/// The tables of the inbox. They differ between databases only in the types of their columns.
constexpr std::array<ExpectedTable, 9> expected_tables(const ExpectedColumns& columns) {
  return {{
      {consumed_message_table, columns.consumed_message, "consumer, business_key", "consumed_at"},
      {schema_table, columns.schema, "version", ""},
      {failed_message_table, columns.failed_message, "consumer, business_key", "last_failed_at"},
      {conflicting_message_table, columns.conflicting_message, "consumer, business_key, content_hash", "last_at"},
      {consumer_table, columns.consumer, "consumer", ""},
      {outbox_message_table, columns.outbox_message, "seq", "", "id"},
      {outbox_relay_table, columns.outbox_relay, "token", ""},
      {outbox_part_table, columns.outbox_part, "part", ""},
      {outbox_database_table, columns.outbox_database, "one", ""},
  }};
}

struct FoundColumn {
  std::string name;
  std::string type;  ///< The type, with its collation if the collation matters.
  bool nullable = true;
  bool has_default = false;  ///< The column has a default or is generated, so an INSERT may omit it.
};

struct FoundIndex {
  std::string name;
  std::string columns;  ///< For example "a, b". The length of a prefix is in parentheses: "a(10)".
  bool primary = false;
  bool unique = false;
  bool partial = false;
  bool constraint = false;  ///< The index belongs to a constraint. The constraint must be dropped to drop the index.
};

struct FoundTable {
  std::vector<FoundColumn> columns;
  std::vector<FoundIndex> indexes;
};

/// How a database compares types, and the SQL that repairs a table.
struct TableDialect {
  bool (*accepts)(const ExpectedColumn&, const FoundColumn&);
  std::string (*add_column)(std::string_view table, const ExpectedColumn&);
  std::string (*change_column)(std::string_view table, const ExpectedColumn&);
  std::string (*set_primary_key)(std::string_view table, std::string_view columns);
  std::string (*drop_index)(std::string_view table, const FoundIndex&);
};

Problem mismatch(std::string subject, std::string found, std::string remedy);
Problem missing_table(std::string_view table);

/// Returns the problem that a view, or another relation that we cannot use, has the table's name.
Problem not_a_table(std::string_view table);

/// Returns each difference that could lose or merge keys, or make one of our statements fail. A missing retention index
/// is a warning. Wider columns, further nullable columns and further plain indexes are no differences, because a newer
/// schema may have them.
std::vector<Problem> compare(const TableDialect&, const ExpectedTable&, const FoundTable&);

/// Whether `problem` is about `table` or a part of it.
bool concerns(const Problem& problem, std::string_view table);

/// Whether `problem` is about a table of the outbox. No consumer uses these tables.
bool concerns_outbox(const Problem& problem);

/// Returns the type, with "NOT NULL" if the column is not nullable.
std::string definition_of(const ExpectedColumn& column);

/// Returns ALTER TABLE … ADD PRIMARY KEY, for the databases that have this statement.
std::string add_primary_key(std::string_view table, std::string_view columns);

/// The parts of a type such as "varbinary(255)": the word before the parenthesis in lower case, and the number in the
/// parentheses.
struct TypeParts {
  std::string base;
  std::optional<long long> size;
};
TypeParts parts_of(std::string_view type);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
