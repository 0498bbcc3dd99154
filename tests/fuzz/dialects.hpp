#pragma once

#include <optional>
#include <string_view>

#include "cli/sql/sql_lexer.hpp"

namespace txinbox::fuzz {

/// The dialect that an input's first line names.
inline std::optional<cli::Dialect> dialect_named(std::string_view name) {
  using cli::Database;
  if (name == "sqlite3") return cli::default_dialect(Database::sqlite3);
  if (name == "mysql") return cli::default_dialect(Database::mysql);
  if (name == "mysql ansi_quotes") return cli::Dialect{Database::mysql, true, true};
  if (name == "mysql no_backslash_escapes") return cli::Dialect{Database::mysql, false, false};
  if (name == "postgresql") return cli::default_dialect(Database::postgresql);
  if (name == "postgresql backslash") return cli::Dialect{Database::postgresql, true, true};
  return std::nullopt;
}

}  // namespace txinbox::fuzz
