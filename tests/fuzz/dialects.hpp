#pragma once

#include <optional>
#include <string_view>

#include "backend/registry.hpp"
#include "cli/sql/user_sql.hpp"

namespace txinbox::fuzz {

/// A database, and how a session on it reads SQL.
struct Dialect {
  std::string_view database;
  const cli::UserSql& sql;
  cli::SqlSyntax syntax;
};

/// The dialect that the first line of an input names: a database, and optionally a setting.
inline std::optional<Dialect> dialect_named(std::string_view name) {
  const auto database = name.substr(0, name.find(' '));
  const auto setting = name.substr(database.size());
  if (database != "sqlite3" && database != "mysql" && database != "postgresql") return std::nullopt;
  const auto& sql = cli::user_sql_of(backend::database_named(database));
  Dialect dialect{database, sql, sql.default_syntax()};
  if (setting == " ansi_quotes" && database == "mysql") {
    dialect.syntax.double_quoted_text = false;
  } else if (setting == " no_backslash_escapes" && database == "mysql") {
    dialect.syntax.backslash_escapes = false;
  } else if (setting == " backslash" && database == "postgresql") {
    dialect.syntax.backslash_escapes = true;
  } else if (!setting.empty()) {
    return std::nullopt;
  }
  return dialect;
}

}  // namespace txinbox::fuzz
