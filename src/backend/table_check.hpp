#pragma once

// Compares the tables in the database with the tables that the migrations create.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/report.hpp"

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
inline constexpr std::string_view pause_table = "txinbox_pause";
inline constexpr std::string_view audit_table = "txinbox_audit";

/// The number of rows of `outbox_part_table`.
inline constexpr int outbox_parts = 64;

/// The tables of the inbox in which a consumer can have rows.
inline constexpr std::array inbox_tables{consumed_message_table, failed_message_table, conflicting_message_table,
                                         consumer_table};

/// The tables that record what operators do.
inline constexpr std::array operations_tables{pause_table, audit_table};

/// The index of the migration V4 on the leases in the consumed-message table.
inline constexpr std::string_view lease_index = "txinbox_consumed_message_lease";

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
  std::vector<ExpectedColumn> columns = {};
  std::string_view primary_key;            ///< For example "a, b".
  std::string_view retention_column = {};  ///< The first column of an index that must exist. Empty if no such index
                                           ///< must exist.
  std::string_view unique_column = {};     ///< A column that must have a unique index besides the primary key. Empty if
                                           ///< there is none.
};

/// How a database declares a kind of column.
struct ColumnType {
  std::string_view name;
  bool has_default = false;
  bool is_rowid = false;  ///< SQLite reports such a column as nullable.
};

/// How a database declares each kind of column of our tables. Sizes are in bytes.
struct ColumnTypes {
  ColumnType exact_name;  ///< Up to 64 bytes that are compared byte for byte.
  ColumnType exact_text;  ///< Up to 255 bytes that are compared byte for byte.
  ColumnType name;        ///< Up to 64 bytes.
  ColumnType text;        ///< Up to 255 bytes.
  ColumnType long_text;   ///< Up to 64 KiB.
  ColumnType state;
  ColumnType migration;  ///< The name of a migration.
  ColumnType version;    ///< A version of the library.
  ColumnType hash;       ///< 32 bytes.
  ColumnType token;      ///< 16 bytes.
  ColumnType message_id;
  ColumnType database_id;
  ColumnType result;   ///< Up to 16 MiB.
  ColumnType payload;  ///< Up to 4 GiB.
  ColumnType integer;
  ColumnType big_integer;
  ColumnType sequence;  ///< The database gives each row the next number.
  ColumnType time;
  ColumnType insert_time;  ///< Some databases set it by a default.
};

/// The tables that the migrations create. They differ between databases only in the types of their columns.
std::vector<ExpectedTable> expected_tables(const ColumnTypes&);

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

inline bool is_error(const Problem& problem) noexcept { return problem.finding.severity == Severity::error; }

/// Throws one `Error` that lists all problems, if at least one has severity error.
void throw_on_errors(const std::vector<Problem>& problems);

/// Whether `problem` is about a table of the outbox. No consumer uses these tables.
bool concerns_outbox(const Problem& problem);

/// Whether `problem` is about one of `operations_tables`. A consumer works without them.
bool concerns_operations(const Problem& problem);

/// Whether `problem` is about a table that a consumer works without.
bool concerns_optional(const Problem& problem);

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
