#include "cli/sql/soci_placeholders.hpp"

namespace txinbox::cli {
namespace {

bool in_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

}  // namespace

std::vector<std::pair<std::size_t, std::string>> soci_placeholders(std::string_view statement, Database database) {
  const bool mysql = database == Database::mysql;
  std::vector<std::pair<std::size_t, std::string>> found;
  auto at = [&](std::size_t i) { return i < statement.size() ? statement[i] : '\0'; };

  for (std::size_t i = 0; i < statement.size(); ++i) {
    const char c = statement[i];
    if (c == '\'' || (c == '"' && !mysql)) {
      bool escaped = false;
      for (++i; i < statement.size() && (statement[i] != c || escaped); ++i) {
        escaped = mysql && statement[i] == '\\' && !escaped;
      }
    } else if (c == ':') {
      if (at(i + 1) == '=' || (!mysql && at(i + 1) == ':')) {
        ++i;
        continue;
      }
      std::size_t end = i + 1;
      while (in_name(at(end))) ++end;
      found.emplace_back(i, std::string(statement.substr(i + 1, end - i - 1)));
      // The character after the name is copied unseen, and on PostgreSQL a cast after it whole.
      i = end;
      if (!mysql && at(end) == ':' && at(end + 1) == ':') ++i;
    }
  }
  return found;
}

}  // namespace txinbox::cli
