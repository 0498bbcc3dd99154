#include "cli/sql/row_statement.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace txinbox::cli {

bool is_row_statement(std::string_view statement) {
  std::string verb;
  for (char c : statement) {
    if (std::isalpha(static_cast<unsigned char>(c)) == 0) break;
    verb += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  constexpr std::array<std::string_view, 6> verbs{"INSERT", "UPDATE", "DELETE", "SELECT", "WITH", "REPLACE"};
  return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

}  // namespace txinbox::cli
