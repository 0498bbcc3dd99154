#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backend/postgresql/native.hpp"
#include "backend/postgresql/parts.hpp"
#include "backend/query.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

constexpr std::string_view exact_text = "text COLLATE \"C\"";

constexpr ColumnTypes types = {
    .exact_name = {exact_text},
    .exact_text = {exact_text},
    .name = {"text"},
    .text = {"text"},
    .long_text = {"text"},
    .state = {"text"},
    .migration = {"text"},
    .version = {"text"},
    .hash = {"bytea"},
    .token = {"uuid"},
    .message_id = {"uuid"},
    .database_id = {"uuid"},
    .result = {"bytea"},
    .payload = {"bytea"},
    .integer = {"integer"},
    .big_integer = {"bigint"},
    .sequence = {.name = "bigint", .has_default = true},
    .time = {"timestamp with time zone"},
    .insert_time = {.name = "timestamp with time zone", .has_default = true},
};

const std::vector<ExpectedTable>& tables() {
  static const std::vector<ExpectedTable> tables = expected_tables(types);
  return tables;
}

/// Whether the found type is the same type, or one that can hold more. The collation matters only for keys.
bool accepts(const ExpectedColumn& wanted, const FoundColumn& found) {
  const std::string_view type = found.type;
  const auto bare = type.substr(0, type.find(" COLLATE "));
  const bool is_text = bare == "text" || bare == "character varying";
  if (wanted.type == exact_text)
    return is_text && (type.ends_with(" COLLATE \"C\"") || type.ends_with(" COLLATE \"POSIX\""));
  if (wanted.type == "text") return is_text;
  if (wanted.type == "integer") return bare == "integer" || bare == "bigint";
  return bare == wanted.type;
}

std::string_view default_of(const ExpectedColumn& column) {
  return column.type.starts_with("timestamp") ? " DEFAULT clock_timestamp()" : " DEFAULT 0";
}

std::string change_column(std::string_view table, const ExpectedColumn& column) {
  const auto bare = column.type.substr(0, column.type.find(" COLLATE "));
  return fmt::format(
      "ALTER TABLE {0} ALTER COLUMN {1} TYPE {2} USING CAST({1} AS {3}), ALTER COLUMN {1} {4} NOT NULL{5}", table,
      column.name, column.type, bare, column.nullable ? "DROP" : "SET",
      column.has_default ? fmt::format(", ALTER COLUMN {} SET{}", column.name, default_of(column)) : "");
}

constexpr TableDialect dialect = {
    .accepts = accepts,
    .add_column =
        [](std::string_view table, const ExpectedColumn& column) {
          return fmt::format("ALTER TABLE {} ADD COLUMN {} {}{}", table, column.name, definition_of(column),
                             column.has_default ? default_of(column) : "");
        },
    .change_column = change_column,
    .set_primary_key = add_primary_key,
    .drop_index =
        [](std::string_view table, const FoundIndex& index) {
          return index.constraint ? fmt::format("ALTER TABLE {} DROP CONSTRAINT {}", table, index.name)
                                  : fmt::format("DROP INDEX {}", index.name);
        },
};

struct Found {
  std::string kind, persistence;
  bool hides_rows = false;
  FoundTable table;
};

std::map<std::string, Found> read(const NativeConnection& sql, const std::string& schema) {
  std::string names;
  for (const ExpectedTable& table : tables()) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", table.name);
  const auto where =
      fmt::format("WHERE n.nspname = {} AND t.relname IN ({})", quote_literal(postgresql_native(sql), schema), names);
  std::map<std::string, Found> found;
  // Views and indexes have columns, too. The caller checks which kind of relation it is.
  for (const Row& row :
       query(sql,
             fmt::format(
                 "SELECT t.relname, t.relkind, t.relpersistence, pg_catalog.row_security_active(t.oid), "
                 "a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), "
                 "CASE WHEN a.attcollation <> 0 THEN pg_catalog.quote_ident(c.collname) END, c.collisdeterministic, "
                 "a.attnotnull, a.atthasdef OR a.attidentity <> '' "
                 "FROM pg_catalog.pg_class t JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace "
                 "JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped "
                 "LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation {} ORDER BY t.relname, a.attnum",
                 where),
             10)) {
    Found& table = found[row[0].value_or("")];
    table.kind = row[1].value_or("");
    table.persistence = row[2].value_or("");
    table.hides_rows = row[3] == "t";
    FoundColumn column{.name = row[4].value_or(""),
                       .type = row[5].value_or(""),
                       .nullable = row[8] == "f",
                       .has_default = row[9] == "t"};
    // quote_ident does not quote a plain lower-case name. The built-in names are in upper case.
    if (row[6]) column.type += " COLLATE " + *row[6] + (row[7] == "f" ? " (not deterministic)" : "");
    table.table.columns.push_back(std::move(column));
  }
  for (const Row& row :
       query(sql,
             fmt::format("SELECT t.relname, i.relname, x.indisprimary, x.indisunique, x.indpred IS NOT NULL, "
                         "ARRAY_TO_STRING(ARRAY(SELECT pg_catalog.pg_get_indexdef(x.indexrelid, k, true) "
                         "FROM pg_catalog.generate_series(1, x.indnkeyatts) k ORDER BY k), ', '), x.indimmediate, "
                         "EXISTS (SELECT FROM pg_catalog.pg_constraint s WHERE s.conindid = x.indexrelid AND s.contype "
                         "IN ('p', 'u', 'x')) "
                         "FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid "
                         "JOIN pg_catalog.pg_class t ON t.oid = x.indrelid "
                         "JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace {} AND x.indisvalid",
                         where),
             8)) {
    const bool deferrable = row[6] == "f";
    found[row[0].value_or("")].table.indexes.push_back(
        {.name = row[1].value_or(""),
         .columns = row[5].value_or("") + (deferrable ? " DEFERRABLE" : ""),
         .primary = row[2] == "t",
         .unique = row[3] == "t",
         .partial = row[4] == "t",
         .constraint = row[7] == "t"});
  }
  return found;
}

/// Checks the trigger that refuses a handler's own commit. `tgtype` 21 is AFTER INSERT OR UPDATE FOR EACH ROW.
std::vector<Problem> check_guard(const NativeConnection& sql, const std::string& schema) {
  const std::string name(guard_trigger);
  const auto rows =
      query(sql,
            fmt::format("SELECT g.tgenabled, g.tgdeferrable AND g.tginitdeferred AND g.tgtype = 21 AND "
                        "p.proname = 'txinbox_refuse_commit', pg_catalog.current_setting('session_replication_role') "
                        "FROM pg_catalog.pg_trigger g "
                        "JOIN pg_catalog.pg_proc p ON p.oid = g.tgfoid "
                        "JOIN pg_catalog.pg_class t ON t.oid = g.tgrelid "
                        "JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace "
                        "WHERE n.nspname = {} AND t.relname = '{}' AND g.tgname = '{}'",
                        quote_literal(postgresql_native(sql), schema), consumed_message_table, guard_trigger),
            3);
  constexpr auto consequence = "so that a message's SQL could commit its claim without the rest";
  if (rows.empty()) {
    return {
        {ErrorCode::schema_missing,
         {Severity::error, name, fmt::format("the trigger on {} is missing, {}", consumed_message_table, consequence),
          "run `txinbox migrate`, or apply migrations/postgresql/V1__inbox.sql"}}};
  }
  if (rows[0][1] != "t") {
    return {mismatch(name,
                     fmt::format("the trigger on {} is not the migration's, {}", consumed_message_table, consequence),
                     fmt::format("DROP TRIGGER {} ON {}, then run `txinbox migrate`", name, consumed_message_table))};
  }
  if (rows[0][0] != "O" && rows[0][0] != "A") {
    return {mismatch(name, fmt::format("the trigger on {} is disabled, {}", consumed_message_table, consequence),
                     fmt::format("ALTER TABLE {} ENABLE TRIGGER {}", consumed_message_table, name))};
  }
  if (rows[0][2] == "replica") {
    return {{ErrorCode::unsafe_connection,
             {Severity::error, "session_replication_role",
              fmt::format("it is replica: the trigger {} does not run, {}", name, consequence),
              "SET session_replication_role = origin"}}};
  }
  return {};
}

}  // namespace

std::vector<Problem> check_postgresql_tables(const NativeConnection& sql, const std::string& schema) {
  std::vector<Problem> problems;
  const auto found = read(sql, schema);
  for (const ExpectedTable& expected : tables()) {
    const std::string name(expected.name);
    const auto at = found.find(name);
    if (at == found.end()) {
      problems.push_back(missing_table(name));
      continue;
    }
    const Found& table = at->second;
    if (table.kind != "r" && table.kind != "p") {
      problems.push_back(not_a_table(expected.name));
      continue;
    }
    if (table.persistence == "u") {
      const bool has_claims = expected.name == consumed_message_table;
      problems.push_back(mismatch(
          name,
          fmt::format("it is UNLOGGED: a crash empties it{}", has_claims ? ", and every message would run again" : ""),
          fmt::format("ALTER TABLE {} SET LOGGED", name)));
    } else if (table.persistence == "t") {
      problems.push_back(mismatch(name, "it is a temporary table, which other sessions do not see",
                                  fmt::format("DROP TABLE pg_temp.{}", name)));
    }
    if (table.hides_rows) {
      problems.push_back(mismatch(name, "row security can hide rows of it from this user",
                                  fmt::format("ALTER TABLE {} DISABLE ROW LEVEL SECURITY, or grant BYPASSRLS", name)));
    }
    std::ranges::move(compare(dialect, expected, table.table), std::back_inserter(problems));
    if (expected.name == consumed_message_table)
      std::ranges::move(check_guard(sql, schema), std::back_inserter(problems));
  }
  return problems;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
