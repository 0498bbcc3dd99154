#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/sql/sql_lexer.hpp"

namespace txinbox::cli {

/// One statement, as SOCI is given it.
struct Statement {
  std::string text;                 // without comments and the semicolon
  std::vector<std::string> names;   // its placeholders, each once
  std::vector<std::size_t> values;  // where each of them is in the script's names
};

/// The user's SQL, taken apart. Bodies with semicolons in them (CREATE TRIGGER … BEGIN … END) are not
/// understood; a body in PostgreSQL's dollar quotes is.
struct Script {
  std::vector<Statement> statements;
  std::vector<std::string> names;  // of all statements, each once

  bool uses(std::string_view name) const;
};

/// Errors: `UsageError` as `lex`; when there is no statement; for a statement that would end the
///         transaction; for a colon that SOCI would take for a placeholder where the database does not.
Script parse_script(std::string_view sql, const Dialect& dialect);

}  // namespace txinbox::cli
