#include "cli/sql/session_dialect.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <soci/soci.h>

#include "cli/sql/row_statement.hpp"
#include "cli/sql/soci_placeholders.hpp"
#include "console/describe_error.hpp"
#include "console/output.hpp"
#include "console/usage_error.hpp"

namespace txinbox::cli {
namespace {

std::string fetch_text(soci::session& session, const std::string& query) {
  std::string text;
  session << query, soci::into(text);
  return text;
}

// MySQL's PREPARE takes the statement as a string, with question marks for values.
std::string mysql_prepare(const Statement& statement, bool backslash_escapes) {
  std::string text = statement.text;
  auto placeholders = soci_placeholders(text, Database::mysql);
  std::reverse(placeholders.begin(), placeholders.end());
  for (const auto& [offset, name] : placeholders) text.replace(offset, name.size() + 1, "?");
  std::string literal;
  for (char c : text) {
    if (c == '\'' || (c == '\\' && backslash_escapes)) literal += c;
    literal += c;
  }
  return "PREPARE txinbox_check FROM '" + literal + "'";
}

void prepare(soci::session& session, const Statement& statement, const Dialect& dialect) {
  if (dialect.database == Database::mysql) {
    session << mysql_prepare(statement, dialect.backslash_escapes);
    session << "DEALLOCATE PREPARE txinbox_check";
    return;
  }
  // In one transaction, so that a pooler has the statement freed where it was prepared.
  std::optional<soci::transaction> transaction;
  if (dialect.database == Database::postgresql) transaction.emplace(session);
  soci::statement prepared(session);
  prepared.alloc();
  prepared.prepare(statement.text, soci::details::st_repeatable_query);
}

// Whether the code says that the SQL is wrong, and not that it cannot be prepared here or now.
bool says_wrong_sql(const std::string& code, Database database) {
  constexpr std::array<std::string_view, 10> mysql{"1052", "1054", "1064", "1066", "1109",
                                                   "1110", "1136", "1142", "1143", "1146"};
  switch (database) {
    case Database::sqlite3:
      return code == "1";
    case Database::mysql:
      return std::find(mysql.begin(), mysql.end(), code) != mysql.end();
    case Database::postgresql:
      return code.starts_with("42") && code != "42P05";  // which is another client's of a pooler
  }
  return false;
}

/// The code of a database's error that is not transient, as "1064" or "42P01"; `error_class` names the database, too.
std::string code_of(const std::exception_ptr& error) {
  const std::string named = error_class(error);
  return named.substr(named.find(' ') + 1);
}

}  // namespace

Dialect session_dialect(soci::session& session, Database database) {
  Dialect dialect = default_dialect(database);
  if (database == Database::mysql) {
    const std::string modes = "," + fetch_text(session, "select @@session.sql_mode") + ",";
    dialect.backslash_escapes = modes.find(",NO_BACKSLASH_ESCAPES,") == std::string::npos;
    dialect.ansi_quotes = modes.find(",ANSI_QUOTES,") != std::string::npos;
  } else if (database == Database::postgresql) {
    dialect.backslash_escapes = fetch_text(session, "show standard_conforming_strings") == "off";
  }
  return dialect;
}

std::size_t longest_statement(soci::session& session, Database database) {
  if (database != Database::mysql) return 0;
  unsigned long long bytes = 0;
  session << "select @@session.max_allowed_packet", soci::into(bytes);
  return bytes;
}

void check_sql(soci::session& session, const Script& script, const Dialect& dialect) {
  for (std::size_t i = 0; i < script.statements.size(); ++i) {
    const Statement& statement = script.statements[i];
    try {
      prepare(session, statement, dialect);
    } catch (const soci::soci_error&) {
      const auto error = std::current_exception();
      const std::string code = code_of(error);
      if (!says_wrong_sql(code, dialect.database)) continue;
      const auto text = fmt::format("SQL statement {}: {}", i + 1, describe_setup_error(error));
      // MySQL allows values in places where PREPARE allows no question mark.
      if (code != "1064" || statement.names.empty()) throw UsageError(text);
      message("txinbox: warning: " + text);
    }
    if (!is_row_statement(statement.text)) return;
  }
}

}  // namespace txinbox::cli
