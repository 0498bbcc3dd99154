#include "sim/database/literals.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "base/hex.hpp"

namespace txinbox::sim {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_of_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

/// The end of a quoted text that begins at `begin`. A quote in the text is doubled.
std::size_t end_of_quoted(std::string_view sql, std::size_t begin) {
  const char quote = sql[begin];
  for (std::size_t at = begin + 1; at < sql.size(); ++at) {
    if (sql[at] != quote) continue;
    if (at + 1 == sql.size() || sql[at + 1] != quote) return at + 1;
    ++at;
  }
  throw std::logic_error("the simulator cannot run " + std::string(sql));
}

std::string unquoted(std::string_view quoted) {
  std::string text;
  for (std::size_t at = 1; at + 1 < quoted.size(); ++at) {
    text += quoted[at];
    if (quoted[at] == quoted.front()) ++at;
  }
  return text;
}

Value number_of(const std::string& digits) {
  if (std::ranges::all_of(digits, is_digit)) return {.type = Value::Type::integer, .integer = std::stoll(digits)};
  return {.type = Value::Type::real, .real = std::stod(digits)};
}

}  // namespace

ParameterizedSql with_parameters(std::string_view sql) {
  ParameterizedSql result;
  const auto add = [&](Value value) {
    result.parameters.push_back(std::move(value));
    result.sql += '?';
  };
  std::size_t at = 0;
  while (at < sql.size()) {
    const std::size_t begin = at;
    const auto text = [&] { return sql.substr(begin, at - begin); };
    const char c = sql[at];
    if (c == '\'') {
      at = end_of_quoted(sql, at);
      add({.type = Value::Type::text, .bytes = unquoted(text())});
    } else if (c == '"') {
      at = end_of_quoted(sql, at);
      result.sql += text();
    } else if ((c == 'x' || c == 'X') && at + 1 < sql.size() && sql[at + 1] == '\'') {
      at = end_of_quoted(sql, at + 1);
      add({.type = Value::Type::blob, .bytes = detail::from_hex(text().substr(2, text().size() - 3))});
    } else if (is_digit(c)) {
      while (at < sql.size() && (is_digit(sql[at]) || sql[at] == '.')) ++at;
      add(number_of(std::string(text())));
    } else if (is_of_name(c)) {
      while (at < sql.size() && is_of_name(sql[at])) ++at;
      result.sql += text();
    } else {
      result.sql += c;
      ++at;
    }
  }
  return result;
}

}  // namespace txinbox::sim
