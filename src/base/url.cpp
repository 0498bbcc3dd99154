#include "base/url.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include <txinbox/error.hpp>

#include "base/ascii.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::invalid_argument,
              "the database URL " + why +
                  "; write it as sqlite:file.db, mysql://user@host:3306/db or postgresql://user@host/db");
}

std::string decode(std::string_view text) {
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) refuse("has a '%' without two hexadecimal digits (a literal one is %25)");
    const char c = static_cast<char>(high * 16 + low);
    if (c == '\0') refuse("holds %00");
    out += c;
    i += 2;
  }
  return out;
}

/// Splits `text` at the first `mark`: returns the part before it, and leaves the part after it. If there is no mark,
/// returns none and leaves `text` as it is.
std::optional<std::string_view> cut(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view before = text.substr(0, at);
  text.remove_prefix(at + 1);
  return before;
}

bool is_word(std::string_view name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

void parse_parameters(std::string_view query, Url& url) {
  while (!query.empty()) {
    std::string_view one = query;
    if (const auto first = cut(query, '&')) {
      one = *first;
    } else {
      query = {};
    }
    if (one.empty()) continue;
    const auto name = cut(one, '=');
    if (!name) refuse("has a parameter without a value after '?'");
    std::string decoded = decode(*name);
    // The name becomes part of a connection string, where a space would begin another parameter.
    if (!is_word(decoded)) refuse("has a parameter whose name is not of letters, digits and underscores");
    url.parameters.emplace_back(std::move(decoded), decode(one));
  }
}

/// Refuses an '@' after the authority. Probably the password before it has a bare '/' or '?', which ended the
/// authority. Then the rest of the password would be read as a name, and error texts show names.
void refuse_stray_at(std::string_view text) {
  const std::size_t end = text.starts_with("//") ? text.find_first_of("/?", 2) : 0;
  if (end == std::string_view::npos || text.find('@', end) == std::string_view::npos) return;
  refuse(
      "has an '@' that does not stand directly before the host (write %40 for it, and in a password %2F for '/' "
      "and %3F for '?')");
}

/// Refuses a line break, such as at the end of a file that the URL was read from. It would become a part of a name.
void refuse_line_breaks(std::string_view text) {
  if (text.find_first_of("\r\n") == std::string_view::npos) return;
  refuse("has a line break, as at the end of a file that it was read from (write %0A if a name has one)");
}

/// Returns the host and the port of "host", "host:port", "[address]" or "[address]:port".
std::pair<std::string, std::string> parse_host(std::string_view text) {
  std::string host;
  std::size_t colon = std::string_view::npos;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) refuse("has a '[' without a ']' in its host");
    host = std::string(text.substr(1, end - 1));
    if (end + 1 < text.size()) colon = end + 1;
    if (colon != std::string_view::npos && text[colon] != ':') refuse("has more than a port behind its ']'");
  } else {
    colon = text.find(':');
    if (colon != text.rfind(':')) refuse("has more than one ':' behind its user (an IPv6 address stands in [])");
    host = decode(text.substr(0, colon));
  }
  std::string port;
  if (colon != std::string_view::npos) port = std::string(text.substr(colon + 1));
  const bool digits = std::all_of(port.begin(), port.end(), [](unsigned char c) { return std::isdigit(c); });
  if (!digits || port.size() > 5 || (!port.empty() && (std::stoi(port) < 1 || std::stoi(port) > 65535))) {
    refuse("has a port that is not a number from 1 to 65535");
  }
  return {std::move(host), std::move(port)};
}

void parse_authority(std::string_view authority, Url& url) {
  // Use the last '@', so that a password with a bare '@' is read as a whole.
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    std::string_view userinfo = authority.substr(0, at);
    authority.remove_prefix(at + 1);
    if (const auto user = cut(userinfo, ':')) {
      url.user = decode(*user);
      url.password = decode(userinfo);
    } else {
      url.user = decode(userinfo);
    }
  }
  std::string ports;
  bool has_port = false;
  bool more = true;
  while (more) {
    std::string_view one = authority;
    const auto first = cut(authority, ',');
    more = first.has_value();
    if (more) one = *first;
    const auto [host, port] = parse_host(one);
    url.host += host + (more ? "," : "");
    ports += port + (more ? "," : "");
    has_port = has_port || !port.empty();
  }
  if (has_port) url.port = std::move(ports);
}

}  // namespace

std::string url_scheme(std::string_view text) {
  const auto scheme = cut(text, ':');
  if (!scheme || scheme->empty()) refuse("does not begin with a scheme");
  return lower_case(*scheme);
}

Url parse_url(std::string_view text, UrlKind kind) {
  Url url;
  url.scheme = url_scheme(text);
  text.remove_prefix(url.scheme.size() + 1);
  refuse_line_breaks(text);
  if (url.scheme == "soci") {  // SOCI's own syntax: do not decode it
    url.path = std::string(text);
    return url;
  }
  if (kind == UrlKind::server) refuse_stray_at(text);
  std::string_view rest = text;
  if (const auto before_query = cut(rest, '?')) {
    parse_parameters(rest, url);
    text = *before_query;
  }
  if (!text.starts_with("//")) {
    url.path = decode(text);
    return url;
  }
  url.has_authority = true;
  text.remove_prefix(2);
  const std::size_t slash = text.find('/');
  parse_authority(text.substr(0, slash), url);
  if (slash != std::string_view::npos) url.path = decode(text.substr(slash + 1));
  return url;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
