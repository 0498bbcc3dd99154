#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "backend/user_sql.hpp"

namespace txinbox::cli {

struct Statement {
  std::string text;                // without comments and the semicolon
  std::vector<std::string> names;  // its placeholders, each once
  backend::SqlStatement sql;       // the same, with the places of the script's values
};

/// The user's SQL, taken apart. Bodies with semicolons in them (CREATE TRIGGER … BEGIN … END) are not
/// understood; a body in dollar quotes is.
struct Script {
  std::vector<Statement> statements;
  std::vector<std::string> names;  // of all statements, each once

  // How many bytes of statements one round trip may carry; 0: one statement runs after the other.
  std::size_t most_together = 0;

  bool uses(std::string_view name) const;
};

/// Errors: `UsageError` as `lex`; when there is no statement; for a statement that would end the
///         transaction, or that `database` refuses.
Script parse_script(std::string_view sql, const backend::UserSql& database, const backend::SqlSyntax& syntax);

/// The same for a session that nobody has configured.
inline Script parse_script(std::string_view sql, const backend::UserSql& database) {
  return parse_script(sql, database, database.default_syntax());
}

}  // namespace txinbox::cli
