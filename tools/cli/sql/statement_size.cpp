#include "cli/sql/statement_size.hpp"

#include <algorithm>
#include <string_view>
#include <variant>

#include <fmt/format.h>

namespace txinbox::cli {
namespace {

constexpr std::size_t longest_integer = 32;  // also the size of NULL

// The server also counts protocol headers. Their size differs.
constexpr std::size_t headers = 1024;

std::size_t quoted_size(std::string_view text, std::string_view doubled) {
  const auto count = std::count_if(text.begin(), text.end(), [&](char c) { return doubled.find(c) != doubled.npos; });
  return text.size() + static_cast<std::size_t>(count) + 2;
}

std::size_t sent_size(const SqlValue& value, std::string_view doubled) {
  if (const auto* text = std::get_if<std::string>(&value)) return quoted_size(*text, doubled);
  if (const auto* number = std::get_if<SqlNumber>(&value)) return number->text.size() + 2;
  return longest_integer;
}

// An upper limit that needs no look at the characters.
std::size_t most_sent(const SqlValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? sent_size(value, {}) : 2 * text->size() + 2;
}

template <class Size>
std::size_t size_of(const Statement& statement, const Values& values, Size&& size) {
  std::size_t sum = 0;
  for (const auto& piece : statement.sql.pieces) sum += piece.size();
  for (const std::size_t at : statement.sql.values) sum += size(values[at]);
  return sum;
}

}  // namespace

std::size_t size_with_values(const Statement& statement, const Values& values, const SqlLimits& limits) {
  return size_of(statement, values, [&](const auto& value) { return sent_size(value, limits.doubled); });
}

std::size_t most_size_with_values(const Statement& statement, const Values& values) {
  return size_of(statement, values, most_sent);
}

void check_size(const Script& script, const Values& values, const SqlLimits& limits) {
  if (limits.statement_bytes == 0) return;
  for (std::size_t i = 0; i < script.statements.size(); ++i) {
    const Statement& statement = script.statements[i];
    // Most lines are far below the limit, even if each character is escaped.
    if (most_size_with_values(statement, values) + headers <= limits.statement_bytes) continue;
    const std::size_t size = size_with_values(statement, values, limits);
    if (size + headers <= limits.statement_bytes) continue;
    throw LineError(fmt::format("statement {} would have {} bytes with the line's values; the server takes {} ({})",
                                i + 1, size, limits.statement_bytes, limits.statement_setting));
  }
}

}  // namespace txinbox::cli
