#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/sql/user_sql.hpp"

namespace txinbox::cli {

struct Token {
  enum class Kind {
    space,        ///< White space and comments.
    word,         ///< A name, keyword or number.
    quoted,       ///< A quoted text or name, with its quotes.
    hint,         ///< A comment that contains code.
    placeholder,  ///< :name; `text` is the name.
    semicolon,
    other,  ///< One character, or one of the operators :: and :=.
  };
  Kind kind;
  std::string text;  ///< As it was written; for space: one blank.
  std::size_t line;  ///< The position in the SQL, from 1.
};

/// Splits the SQL into tokens.
///
/// Errors: `UsageError` for a quote or comment that does not end, and for a placeholder that is not written as :name or
///          that the database would not bind.
std::vector<Token> lex(std::string_view sql, const SqlSyntax& syntax);

}  // namespace txinbox::cli
