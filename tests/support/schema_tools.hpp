#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/error.hpp>
#include <txinbox/inspect.hpp>

#include "support/test_database.hpp"

namespace txinbox::test {

/// Chooses the text for the database of this run.
template <typename T>
T here(T sqlite3, T mysql, T postgresql) {
  return on_sqlite3() ? sqlite3 : on_mysql() ? mysql : postgresql;
}

/// The folder of this database's migrations in the source tree.
std::string migrations_folder();

/// The paths of the migrations, in order.
std::vector<std::string> migration_files();

std::string text_of(const std::string& path);

/// The texts of all migrations, one after the other.
std::string all_migrations();

/// Replaces a part of `text`. The part must occur in it.
std::string replaced(std::string text, std::string_view from, std::string_view to);

/// The migrations with another definition of the first column with that name. Empty: without the column.
std::string with_column(std::string migration, std::string_view name, std::string_view definition);

void run_statements(const TestDatabase&, const std::string& script);

/// The error of `verify`; nothing if it throws none.
struct Refusal {
  ErrorCode code;
  std::string text;
};
std::optional<Refusal> refusal_by_verify(const TestDatabase&);
std::optional<Refusal> refusal_by_migrate(const TestDatabase&);

/// The text after "remedy: " in the finding about `subject`. Empty if there is no such finding.
std::string remedy_in(const std::string& refusal, const std::string& subject);

/// The number of findings in the text.
std::ptrdiff_t findings_in(const std::string& refusal);

/// The findings of `diagnose` about a subject on this session.
std::vector<Finding> findings_about(soci::session&, std::string_view subject);

/// The findings of `diagnose` on a pool's connection, without those of every clean server of this kind: on a node of a
/// Galera cluster, the note about auto_increment_increment.
std::vector<Finding> findings_beyond_clean_server(const TestDatabase&);

bool has_table(const TestDatabase&, const std::string& name);

/// Runs a program. Returns its exit status and its output.
struct Ran {
  int status;
  std::string output;
};
Ran run_program(const std::string& command_line);

/// The text in quotes for the shell.
std::string shell_quoted(const std::string& text);

}  // namespace txinbox::test
