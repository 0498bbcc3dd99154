#include "page/access.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <txinbox/error.hpp>

#include "shared/ascii.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

using component::lower_case;

constexpr std::size_t least_token = 16;
constexpr std::size_t longest_name = 255;

/// "localhost" of "localhost:8317", "::1" of "[::1]:8317".
std::string host_of(std::string_view authority) {
  if (authority.starts_with('[')) {
    const auto end = authority.find(']');
    return end == std::string_view::npos ? std::string() : lower_case(authority.substr(1, end - 1));
  }
  return lower_case(authority.substr(0, authority.find(':')));
}

/// The bytes of a Base64 text; none if it is not valid.
std::optional<std::string> from_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0 || text.size() > 4096) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  const int length =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (length < 0) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(length) -
               static_cast<std::size_t>(text.ends_with("==") ? 2 : text.ends_with('=')));
  return bytes;
}

/// The value of a header field that must be there once; none otherwise.
std::optional<std::string_view> only_header(const Request& request, std::string_view name) {
  std::optional<std::string_view> value;
  for (const Header& each : request.headers) {
    if (lower_case(each.name) != lower_case(name)) continue;
    if (value) return std::nullopt;
    value = each.value;
  }
  return value;
}

std::string without_default_port(std::string_view authority, std::string_view scheme) {
  const std::string_view port = scheme == "https" ? ":443" : ":80";
  if (authority.ends_with(port)) authority.remove_suffix(port.size());
  return lower_case(authority);
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= longest_name &&
         std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

bool same(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace

SignIn sign_in_with_token(std::string token) {
  if (token.size() < least_token) {
    throw Error(ErrorCode::invalid_argument, "the token of an operators' page must have at least 16 bytes");
  }
  return [token = std::move(token)](const Request& request) -> std::optional<std::string> {
    const auto field = find_header(request.headers, "Authorization");
    constexpr std::string_view scheme = "basic ";
    if (!field || lower_case(field->substr(0, scheme.size())) != scheme) return std::nullopt;
    const auto pair = from_base64(field->substr(scheme.size()));
    const auto colon = pair ? pair->find(':') : std::string::npos;
    if (colon == std::string::npos || !same(std::string_view(*pair).substr(colon + 1), token)) return std::nullopt;
    const std::string name = pair->substr(0, colon);
    return is_name(name) ? std::optional(name) : std::nullopt;
  };
}

SignIn sign_in_by_header(std::string name) {
  return [name = std::move(name)](const Request& request) -> std::optional<std::string> {
    const auto field = only_header(request, name);  // a proxy may have left the client's own field
    return field && is_name(*field) ? std::optional<std::string>(*field) : std::nullopt;
  };
}

Access::Access(const OperatorPageOptions& options) : options_(options) {
  const auto require = [](bool holds, const char* text) {
    if (!holds) throw Error(ErrorCode::invalid_argument, text);
  };
  require(options.path.empty() || (options.path.starts_with('/') && !options.path.ends_with('/')),
          "OperatorPageOptions::path must be empty, or begin with a slash and not end with one");
  require(!options.hosts.empty(), "OperatorPageOptions::hosts must name at least one host");
  require(!options.may_write || options.sign_in, "OperatorPageOptions::may_write needs a sign_in");
  require(options.anyone_may_read || options.sign_in,
          "OperatorPageOptions needs a sign_in, or anyone_may_read if everybody who reaches the server may read");
  require(
      std::ranges::all_of(options.path,
                          [](unsigned char c) { return std::isalnum(c) != 0 || std::strchr("/-._~", c) != nullptr; }) &&
          options.path.find("//") == std::string::npos,
      "OperatorPageOptions::path has a character that is not a letter, a digit, or one of -._~, or an empty part");
}

std::optional<Refused> Access::refuses_host(const Request& request) const {
  const auto field = only_header(request, "Host");
  const std::string host = host_of(field.value_or(""));
  const bool is_known = !host.empty() && std::ranges::any_of(options_.hosts, [&](const std::string& each) {
    return lower_case(each) == host;
  });
  if (is_known) return std::nullopt;
  return Refused{421, "this page is not reached by the host that the request names"};
}

std::optional<Refused> Access::refuses_read(const Request& request) const {
  const auto site = find_header(request.headers, "Sec-Fetch-Site");
  const bool is_of_another = site && (*site == "cross-site" || *site == "same-site");
  if (!is_of_another || find_header(request.headers, "Sec-Fetch-Mode") == "navigate") return std::nullopt;
  return Refused{403, "the request comes from another origin"};
}

std::optional<Refused> Access::refuses_change(const Request& request) const {
  if (!options_.may_write) return Refused{403, "this page is read-only"};
  if (!find_header(request.headers, "X-Txinbox")) return Refused{403, "a change needs the header field X-Txinbox"};
  const auto site = find_header(request.headers, "Sec-Fetch-Site");
  if (site && *site != "same-origin" && *site != "none") return Refused{403, "the request comes from another origin"};
  const auto origin = find_header(request.headers, "Origin");
  if (!origin) return std::nullopt;  // not a browser
  const auto scheme_end = origin->find("://");
  const auto host = find_header(request.headers, "Host").value_or("");
  const std::string scheme = scheme_end == std::string_view::npos ? "" : lower_case(origin->substr(0, scheme_end));
  const auto at = scheme_end == std::string_view::npos ? std::string_view() : origin->substr(scheme_end + 3);
  if (scheme.empty() || without_default_port(at, scheme) != without_default_port(host, scheme)) {
    return Refused{403, "the request comes from another origin"};
  }
  return std::nullopt;
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
