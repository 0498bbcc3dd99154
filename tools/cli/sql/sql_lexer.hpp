#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace txinbox::cli {

/// The kinds of database, which differ in how SQL is read and values are bound.
enum class Database { sqlite3, mysql, postgresql };

/// By the name that SOCI uses.
Database sql_database(std::string_view name);

/// How a session reads SQL, as far as quotes go.
struct Dialect {
  Database database = Database::sqlite3;
  bool backslash_escapes = false;  ///< In '…': MySQL unless NO_BACKSLASH_ESCAPES; PostgreSQL where
                                   ///< standard_conforming_strings is off.
  bool ansi_quotes = true;         ///< "…" is a name, not a string: MySQL only with ANSI_QUOTES.

  friend bool operator==(const Dialect&, const Dialect&) = default;
};

/// What a session has that nobody configured.
Dialect default_dialect(Database database);

struct Token {
  enum class Kind {
    space,        ///< White space and comments.
    word,         ///< A name, keyword or number.
    quoted,       ///< Any quotes with what is in them.
    hint,         ///< MySQL's /*+ … */ and /*! … */, which are comments only to others.
    placeholder,  ///< :name; `text` is the name.
    semicolon,
    other,  ///< One character, or one of the operators :: and :=.
  };
  Kind kind;
  std::string text;  ///< What the database is to be sent for it; quotes may be rewritten so that
                     ///< SOCI's own parser, which knows only '…', can follow.
  std::size_t line;  ///< In the SQL, from 1.
};

/// The SQL as tokens.
///
/// Errors: `UsageError` for a quote or comment that does not end, and for a placeholder that is not
///         written :name or that the database would leave unbound.
std::vector<Token> lex(std::string_view sql, const Dialect& dialect);

}  // namespace txinbox::cli
