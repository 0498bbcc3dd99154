#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "backend/user_sql.hpp"

namespace txinbox::cli {

struct Token {
  enum class Kind {
    space,        ///< White space and comments.
    word,         ///< A name, keyword or number.
    quoted,       ///< Any quotes with what is in them.
    hint,         ///< A comment with code in it.
    placeholder,  ///< :name; `text` is the name.
    semicolon,
    other,  ///< One character, or one of the operators :: and :=.
  };
  Kind kind;
  std::string text;  ///< As it was written; a blank for space.
  std::size_t line;  ///< In the SQL, from 1.
};

/// The SQL as tokens.
///
/// Errors: `UsageError` for a quote or comment that does not end, and for a placeholder that is not
///         written :name or that the database would leave unbound.
std::vector<Token> lex(std::string_view sql, const backend::SqlSyntax& syntax);

}  // namespace txinbox::cli
