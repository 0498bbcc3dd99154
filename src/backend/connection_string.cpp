#include "backend/connection_string.hpp"

#include <algorithm>
#include <cctype>
#include <functional>
#include <string_view>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

namespace {

/// A shorter value can occur in a text for another reason: "1" occurs in "127.0.0.1". So a shorter value is replaced
/// only between quotation marks. The libraries write values between quotation marks.
constexpr std::size_t shortest_anywhere = 4;

bool is_quote(char c) { return c == '"' || c == '\'' || c == '`'; }

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// Whether the value is not a part of a longer word. For example, "require" is a part of "required" in "SSL was
/// required".
bool stands_alone(std::string_view text, std::size_t at, std::size_t size) {
  const char before = at == 0 ? ' ' : text[at - 1];
  const char after = at + size < text.size() ? text[at + size] : ' ';
  if (size < shortest_anywhere) return is_quote(before) && is_quote(after);
  return !(is_word(before) && is_word(text[at])) && !(is_word(text[at + size - 1]) && is_word(after));
}

void replace_all(std::string& text, std::string_view value, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(value, at)) != std::string::npos;) {
    if (stands_alone(text, at, value.size())) {
      text.replace(at, value.size(), by);
      at += by.size();
    } else {
      ++at;
    }
  }
}

void add_parts(const std::string& name, std::string_view value, std::string_view separators,
               detail::UrlParameters& parts) {
  while (!value.empty()) {
    const std::size_t end = std::min(value.find_first_of(separators), value.size());
    parts.emplace_back(name, value.substr(0, end));
    value.remove_prefix(std::min(end + 1, value.size()));
  }
}

}  // namespace

std::string without_values(std::string text, const detail::UrlParameters& parameters) {
  detail::UrlParameters hidden = parameters;
  for (const auto& [name, value] : parameters) {
    // Hosts and ports are lists with commas. The value of `options` has the form -c name=value.
    add_parts(name, value, name == "options" ? " =\\" : ",", hidden);
  }
  // Put the longest values first, because one value can be part of another.
  std::ranges::stable_sort(hidden, std::greater(), [](const auto& parameter) { return parameter.second.size(); });
  for (const auto& [name, value] : hidden) {
    if (!value.empty()) replace_all(text, value, "[" + name + "]");
  }
  return text;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
