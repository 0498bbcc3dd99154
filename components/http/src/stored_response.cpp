#include "stored_response.hpp"

#include <algorithm>
#include <charconv>

#include <txinbox/error.hpp>

#include "shared/ascii.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

constexpr std::string_view version = "HTTP/1.1 ";
constexpr std::string_view line_end = "\r\n";
constexpr std::string_view colon = ": ";

/// Whether a token may contain this character (RFC 9110, section 5.6.2).
bool is_token(char c) {
  return (c >= '0' && c <= '9') || (component::lower_case_of(c) >= 'a' && component::lower_case_of(c) <= 'z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_field_name(std::string_view name) { return !name.empty() && std::ranges::all_of(name, is_token); }

bool is_value(std::string_view value) {
  return std::ranges::none_of(value, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
}

bool is_kept(std::string_view name, const std::vector<std::string>& kept_headers) {
  return std::ranges::any_of(kept_headers, [&](const std::string& kept) { return same_name(kept, name); });
}

/// Removes and returns the text up to the end of the line. None if no line ends.
std::optional<std::string_view> take_line(std::string_view& text) {
  const auto end = text.find(line_end);
  if (end == std::string_view::npos) return std::nullopt;
  const auto line = text.substr(0, end);
  text.remove_prefix(end + line_end.size());
  return line;
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, {}, component::lower_case_of, component::lower_case_of);
}

std::string stored_form(const Response& response, const std::vector<std::string>& kept_headers, bool with_body) {
  if (response.status < 100 || response.status > 599) {
    throw Error(ErrorCode::invalid_argument, "the handler's Response has a status that is not from 100 to 599");
  }
  std::string stored;
  stored.reserve(128 + (with_body ? response.body.size() : 0));
  stored.append(version).append(std::to_string(response.status)).append(" ").append(line_end);
  for (const Header& each : response.headers) {
    if (!is_field_name(each.name) || !is_value(each.value)) {
      throw Error(
          ErrorCode::invalid_argument,
          "the handler's Response has a header field whose name is no token, or whose value holds CR, LF or NUL");
    }
    if (is_kept(each.name, kept_headers)) {
      stored.append(each.name).append(colon).append(each.value).append(line_end);
    }
  }
  stored.append(line_end);
  if (with_body) stored.append(response.body);
  return stored;
}

std::optional<Response> read_stored_form(std::string_view stored) {
  constexpr std::size_t digits = 3;
  const auto first = take_line(stored);
  if (!first || first->size() != version.size() + digits + 1 || !first->starts_with(version)) return std::nullopt;
  Response response;
  const char* number = first->data() + version.size();
  const auto [end, error] = std::from_chars(number, number + digits, response.status);
  if (error != std::errc() || end != number + digits || *end != ' ' || response.status < 100 || response.status > 599) {
    return std::nullopt;
  }
  for (;;) {
    const auto line = take_line(stored);
    if (!line) return std::nullopt;
    if (line->empty()) break;
    const auto at = line->find(colon);
    if (at == std::string_view::npos || !is_field_name(line->substr(0, at)) || !is_value(line->substr(at))) {
      return std::nullopt;
    }
    response.headers.push_back({std::string(line->substr(0, at)), std::string(line->substr(at + colon.size()))});
  }
  response.body = stored;
  return response;
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
