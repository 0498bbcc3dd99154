#include "backend/script.hpp"

#include <soci/soci.h>

#include <algorithm>
#include <exception>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

std::vector<std::string> statements_of(std::string_view script) {
  constexpr std::string_view blank = " \t\r\n";
  std::vector<std::string> statements;
  std::string statement;
  const auto end_statement = [&] {
    const auto first = statement.find_first_not_of(blank);
    if (first != std::string::npos) {
      statements.push_back(statement.substr(first, statement.find_last_not_of(blank) + 1 - first));
    }
    statement.clear();
  };

  char quote = '\0';
  for (std::size_t i = 0; i < script.size(); ++i) {
    const char c = script[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';  // a doubled quote ends the string and begins it again
    } else if (c == '\'' || c == '"' || c == '`') {
      quote = c;
    } else if (script.substr(i, 2) == "--") {
      i = std::min(script.find('\n', i), script.size() - 1);
      statement += '\n';
      continue;
    } else if (c == ';') {
      end_statement();
      continue;
    }
    statement += c;
  }
  end_statement();
  return statements;
}

void run_script(soci::session& sql, std::string_view script) {
  for (const std::string& statement : statements_of(script)) sql << statement;
}

void try_roll_back(soci::session& sql) noexcept {
  try {
    sql.rollback();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): see the declaration
  }
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
