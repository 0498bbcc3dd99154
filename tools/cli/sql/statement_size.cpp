#include "cli/sql/statement_size.hpp"

#include <algorithm>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "cli/sql/soci_placeholders.hpp"

namespace txinbox::cli {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t longest_number = 32;  // and NULL

// The server counts headers of its own; how many differs.
constexpr std::size_t headers = 1024;

std::size_t quoted_size(std::string_view text, const Dialect& dialect) {
  const auto escaped = dialect.backslash_escapes ? "\0\n\r\\'\"\x1a"sv : "'"sv;
  const auto count = std::count_if(text.begin(), text.end(), [&](char c) { return escaped.find(c) != escaped.npos; });
  return text.size() + static_cast<std::size_t>(count) + 2;
}

std::size_t sent_size(const BoundValue& value, const Dialect& dialect) {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? longest_number : quoted_size(*text, dialect);
}

}  // namespace

std::size_t size_for_mysql(const Statement& statement, const Values& values, const Dialect& dialect) {
  std::size_t size = statement.text.size();
  for (const auto& [offset, name] : soci_placeholders(statement.text, Database::mysql)) {
    const auto at = std::find(statement.names.begin(), statement.names.end(), name) - statement.names.begin();
    size += sent_size(values[statement.values[static_cast<std::size_t>(at)]], dialect);
    size -= 1 + name.size();
  }
  return size;
}

void check_size(const Script& script, const Values& values, const Dialect& dialect, std::size_t longest) {
  if (longest == 0) return;
  // Most lines are far from it, even with every character escaped.
  std::size_t most = 0;
  for (const auto& value : values) {
    const auto* text = std::get_if<std::string>(&value);
    most += text == nullptr ? longest_number : 2 * text->size() + 2;
  }
  for (std::size_t i = 0; i < script.statements.size(); ++i) {
    const Statement& statement = script.statements[i];
    const auto colons = static_cast<std::size_t>(std::count(statement.text.begin(), statement.text.end(), ':'));
    if (statement.text.size() + most * colons < longest / 2) continue;
    const std::size_t size = size_for_mysql(statement, values, dialect);
    if (size + headers <= longest) continue;
    throw LineError(
        fmt::format("statement {} would have {} bytes with the line's values; the server takes {} "
                    "(max_allowed_packet)",
                    i + 1, size, longest));
  }
}

}  // namespace txinbox::cli
