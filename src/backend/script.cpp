#include "backend/script.hpp"

#include <algorithm>
#include <exception>

#include "backend/database.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

std::vector<std::string> statements_of(std::string_view script) {
  constexpr std::string_view blank = " \t\r\n";
  constexpr std::string_view delimiter_line = "DELIMITER ";
  std::string_view delimiter = ";";
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
    } else if (script.substr(i).starts_with(delimiter)) {
      end_statement();
      i += delimiter.size() - 1;
      continue;
    } else if (script.substr(i).starts_with(delimiter_line) && (i == 0 || script[i - 1] == '\n')) {
      const auto begin = i + delimiter_line.size();
      const auto end = std::min(script.find('\n', begin), script.size());
      delimiter = script.substr(begin, end - begin);
      i = end;
      continue;
    }
    statement += c;
  }
  end_statement();
  return statements;
}

void run_script(const NativeConnection& connection, std::string_view script) {
  for (const std::string& statement : statements_of(script)) connection.database().run(connection, statement);
}

void try_roll_back(const NativeConnection& connection) noexcept {
  try {
    connection.database().run(connection, "ROLLBACK");
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): see the declaration
  }
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
