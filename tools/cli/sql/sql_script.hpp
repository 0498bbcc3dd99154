#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/sql/user_sql.hpp"

namespace txinbox::cli {

struct Statement {
  std::string text;                // without comments and without the semicolon
  std::vector<std::string> names;  // its placeholders, without repetition
  SqlStatement sql;                // the same, with the positions of the script's values
};

/// The user's SQL, split into statements. A body that contains semicolons (CREATE TRIGGER … BEGIN … END) is not
/// supported, except in dollar quotes.
struct Script {
  std::vector<Statement> statements;
  std::vector<std::string> names;  // of all statements, without repetition

  // How many bytes of statements one round trip may contain. 0: the statements run one after the other.
  std::size_t most_together = 0;

  bool uses(std::string_view name) const;
};

/// Errors: `UsageError` as `lex`; if there is no statement; for a statement that would end the transaction, or that
///          `database` refuses.
Script parse_script(std::string_view sql, const UserSql& database, const SqlSyntax& syntax);

/// The same for a session with the default settings.
inline Script parse_script(std::string_view sql, const UserSql& database) {
  return parse_script(sql, database, database.default_syntax());
}

/// Whether the statement's first word says that it only reads or changes rows, such as INSERT or WITH. Not CREATE, SET
/// or CALL.
bool is_row_statement(std::string_view statement);

}  // namespace txinbox::cli
