#include "backend/table_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backend/query.hpp"
#include "base/ascii.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

bool lists(std::string_view columns, std::string_view name) {
  while (!columns.empty()) {
    const auto comma = columns.find(", ");
    if (columns.substr(0, comma) == name) return true;
    if (comma == std::string_view::npos) break;
    columns.remove_prefix(comma + 2);
  }
  return false;
}

/// Whether the columns are unique together if the key is unique: each column of the key is among the columns.
bool covers(std::string_view columns, std::string_view key) {
  while (!key.empty()) {
    const auto comma = key.find(", ");
    if (!lists(columns, key.substr(0, comma))) return false;
    key.remove_prefix(comma == std::string_view::npos ? key.size() : comma + 2);
  }
  return true;
}

std::string describe(const FoundColumn& column) {
  return fmt::format("{}{}", column.type.empty() ? "no type" : column.type, column.nullable ? "" : " NOT NULL");
}

void compare_columns(const TableDialect& dialect, const ExpectedTable& expected, const FoundTable& found,
                     std::vector<Problem>& problems) {
  for (const ExpectedColumn& wanted : expected.columns) {
    const auto subject = fmt::format("{}.{}", expected.name, wanted.name);
    const auto at = std::ranges::find(found.columns, wanted.name, &FoundColumn::name);
    if (at == found.columns.end()) {
      problems.push_back(mismatch(subject, "the column is missing", dialect.add_column(expected.name, wanted)));
      continue;
    }
    const bool is_key = lists(expected.primary_key, wanted.name);
    const bool type_fits = dialect.accepts(wanted, *at);
    if (!type_fits || at->nullable != wanted.nullable) {
      const auto* why = !is_key     ? ""
                        : type_fits ? ": keys may be NULL, and then are never equal"
                                    : ": keys are not compared byte for byte, or are cut";
      problems.push_back(mismatch(subject,
                                  fmt::format("it is {} instead of {}{}", describe(*at), definition_of(wanted), why),
                                  dialect.change_column(expected.name, wanted)));
    } else if (wanted.has_default && !at->has_default) {
      problems.push_back(mismatch(subject, "it has no default", dialect.change_column(expected.name, wanted)));
    }
  }
  for (const FoundColumn& column : found.columns) {
    const bool ours = std::ranges::find(expected.columns, column.name, &ExpectedColumn::name) != expected.columns.end();
    if (ours || column.nullable || column.has_default) continue;
    problems.push_back(mismatch(fmt::format("{}.{}", expected.name, column.name),
                                "a column that is not ours is NOT NULL and has no default, so no claim can be inserted",
                                "make it nullable, give it a default, or remove it"));
  }
}

void compare_indexes(const TableDialect& dialect, const ExpectedTable& expected, const FoundTable& found,
                     std::vector<Problem>& problems) {
  const auto subject = std::string(expected.name);
  const auto primary = std::ranges::find_if(found.indexes, &FoundIndex::primary);
  if (primary == found.indexes.end()) {
    problems.push_back(mismatch(subject, fmt::format("the primary key ({}) is missing", expected.primary_key),
                                dialect.set_primary_key(expected.name, expected.primary_key)));
  } else if (primary->columns != expected.primary_key) {
    problems.push_back(mismatch(
        subject, fmt::format("the primary key is ({}) instead of ({})", primary->columns, expected.primary_key),
        "after dropping that key: " + dialect.set_primary_key(expected.name, expected.primary_key)));
  }
  for (const FoundIndex& index : found.indexes) {
    if (!index.unique || index.primary || covers(index.columns, expected.primary_key)) continue;
    if (!expected.unique_column.empty() && covers(index.columns, expected.unique_column)) continue;
    problems.push_back(mismatch(
        subject, fmt::format("the unique index {} on ({}) refuses keys that are new", index.name, index.columns),
        dialect.drop_index(expected.name, index)));
  }
  if (expected.retention_column.empty()) return;
  const bool indexed = std::ranges::any_of(found.indexes, [&](const FoundIndex& index) {
    return !index.partial && index.columns.substr(0, index.columns.find(", ")) == expected.retention_column;
  });
  const bool has_column =
      std::ranges::find(found.columns, expected.retention_column, &FoundColumn::name) != found.columns.end();
  if (!indexed && has_column) {
    problems.push_back(
        {ErrorCode::schema_mismatch,
         {Severity::warning, subject,
          fmt::format("there is no index on {}: each purge reads the whole table", expected.retention_column),
          fmt::format("CREATE INDEX {0}_{1} ON {0} ({1})", expected.name, expected.retention_column)}});
  }
}

}  // namespace

Problem mismatch(std::string subject, std::string found, std::string remedy) {
  return {ErrorCode::schema_mismatch, {Severity::error, std::move(subject), std::move(found), std::move(remedy)}};
}

Problem missing_table(std::string_view table) {
  return {ErrorCode::schema_missing,
          {Severity::error, std::string(table), "the table is missing, or this user may not see it",
           "call txinbox::migrate, or run `txinbox migrate`, or apply the files in migrations/; grant the service what "
           "docs/operations/migrations.md lists"}};
}

Problem not_a_table(std::string_view table) {
  return mismatch(std::string(table), "it is not an ordinary table", "rename or remove it, then run `txinbox migrate`");
}

std::vector<Problem> compare(const TableDialect& dialect, const ExpectedTable& expected, const FoundTable& found) {
  std::vector<Problem> problems;
  compare_columns(dialect, expected, found, problems);
  compare_indexes(dialect, expected, found, problems);
  return problems;
}

bool concerns(const Problem& problem, std::string_view table) {
  const std::string_view subject = problem.finding.subject;
  return subject.starts_with(table) && (subject.size() == table.size() || subject[table.size()] == '.');
}

bool concerns_outbox(const Problem& problem) {
  return concerns(problem, outbox_message_table) || concerns(problem, outbox_relay_table) ||
         concerns(problem, outbox_part_table) || concerns(problem, outbox_database_table);
}

bool concerns_operations(const Problem& problem) {
  return std::ranges::any_of(operations_tables, [&](std::string_view table) { return concerns(problem, table); });
}

bool concerns_optional(const Problem& problem) { return concerns_outbox(problem) || concerns_operations(problem); }

std::string definition_of(const ExpectedColumn& column) {
  return fmt::format("{}{}", column.type, column.nullable ? "" : " NOT NULL");
}

std::string add_primary_key(std::string_view table, std::string_view columns) {
  return fmt::format("ALTER TABLE {} ADD PRIMARY KEY ({})", table, columns);
}

TypeParts parts_of(std::string_view type) {
  TypeParts parts;
  const auto end = type.find_first_of("( ");
  parts.base = detail::lower_case(type.substr(0, end));
  if (end != std::string_view::npos && type[end] == '(') parts.size = number_in(type.substr(end + 1));
  return parts;
}

void throw_on_errors(const std::vector<Problem>& problems) {
  if (std::ranges::none_of(problems, is_error)) return;
  // The codes are in the order in which they must be fixed, so the first one is thrown. The exception is a table with
  // our name that no migration made: while it exists, no migration can be applied.
  const auto has = [&](ErrorCode code, std::string_view table) {
    return std::ranges::any_of(problems, [&](const Problem& p) { return p.code == code && concerns(p, table); });
  };
  const bool foreign =
      has(ErrorCode::schema_missing, schema_table) && has(ErrorCode::schema_mismatch, consumed_message_table);
  auto code = ErrorCode::unsafe_connection;
  std::string text = "the database is not ready for txinbox:";
  int number = 0;
  for (const Problem& problem : problems) {
    const Finding& finding = problem.finding;
    if (is_error(problem)) code = std::min(code, problem.code);
    text += fmt::format(" [{}] {}: {}; remedy: {}", ++number, finding.subject, finding.found, finding.remedy);
  }
  throw Error(foreign ? ErrorCode::schema_mismatch : code, text);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
