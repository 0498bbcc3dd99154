// A database URL. Its parts must be the parts that were encoded, and libpq must get exactly these parts. A password
// must be recognized, and must be in no other part and in no error text.
//
// Input: the scheme, user, password, host, port, path and parameters (name, value, …), each on its own line.

#include "base/url.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include <txinbox/error.hpp>

#include "console/database_option.hpp"
#include "fuzz.hpp"
#include "libpq_options.hpp"

using namespace txinbox::fuzz;
using txinbox::detail::parse_url;
using txinbox::detail::Url;

namespace {

constexpr std::string_view secret = "S3cr3tQz";

struct Pieces {
  explicit Pieces(Fields fields) {
    for (auto* piece : {&scheme, &user, &password, &host, &port, &path}) *piece = std::string(fields.line());
    while (!fields.empty()) {
      std::string name(fields.line());
      parameters.emplace_back(std::move(name), fields.line());
    }
  }

  std::string scheme, user, password, host, port, path;
  std::vector<std::pair<std::string, std::string>> parameters;
};

std::string encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789aBcDeF";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      result += c;
    } else {
      result += {'%', digits[byte >> 4U], digits[byte & 15U]};
    }
  }
  return result;
}

template <class Write>
std::string url_of(const Pieces& p, std::string_view password, Write write) {
  std::string url = p.scheme + "://";
  if (!p.user.empty() || !password.empty()) url += write(p.user) + ":" + write(password) + "@";
  url += write(p.host) + (p.port.empty() ? "" : ":" + p.port) + "/" + write(p.path);
  char mark = '?';
  for (const auto& [name, value] : p.parameters) {
    url += mark + write(name) + "=" + write(value);
    mark = '&';
  }
  return url;
}

bool is_scheme_of_server(std::string_view scheme) {
  constexpr std::array<std::string_view, 4> schemes{"mysql", "mariadb", "postgresql", "postgres"};
  return std::find(schemes.begin(), schemes.end(), scheme) != schemes.end();
}

bool is_port(const std::string& text) {
  if (text.empty()) return true;
  if (text.size() > 5 || text.find_first_not_of("0123456789") != std::string::npos) return false;
  return std::stoi(text) >= 1 && std::stoi(text) <= 65535;
}

bool is_name(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
  });
}

bool is_taken(const Pieces& p) {
  std::string all = p.user + p.password + p.host + p.path;
  for (const auto& [name, value] : p.parameters) {
    if (!is_name(name)) return false;
    all += value;
  }
  return is_port(p.port) && all.find('\0') == std::string::npos;
}

// Percent-encoded parts must be decoded to the original parts, or the URL must be refused.
void claim_round_trip(const Pieces& p) {
  // The port is not encoded. If it contains such a character, the URL has other parts.
  if (p.port.find_first_of("@:/?[]") != std::string::npos) return;
  const std::string text = url_of(p, p.password, encoded);
  const auto url = unless_refused<txinbox::Error>([&] { return parse_url(text); });
  claim(url.has_value() == is_taken(p), "a URL is accepted if it is well-formed, and only then");
  if (!url) return;
  claim(url->scheme == p.scheme && url->user == p.user && url->password == p.password && url->host == p.host &&
            url->port == p.port && url->path == p.path && url->parameters == p.parameters,
        "a URL's parts are the parts that were encoded");
  if (p.scheme == "postgresql") claim_reaches_libpq(*url);
}

// The password is not encoded here, as a person may write it. Its text must be in no error text, and in no part except
// the password.
void claim_secret_is_kept(const Pieces& p) {
  const auto raw = [](std::string_view text) { return std::string(text); };
  const std::string text = url_of(p, p.password + std::string(secret), raw);
  try {
    const Url url = parse_url(text);
    claim(url.password.find(secret) != std::string::npos, "the password contains its text");
    std::string others = url.scheme + url.user + url.host + url.port + url.path;
    for (const auto& [name, value] : url.parameters) others += name + value;
    claim(others.find(secret) == std::string::npos, "no other part contains the password");
    claim(txinbox::cli::holds_password(text), "a password is recognized");
  } catch (const txinbox::Error& error) {
    claim(std::string_view(error.what()).find(secret) == std::string_view::npos, "no error text contains the password");
  }
}

// A password must be recognized in any text.
void claim_password_is_seen(std::string_view text) {
  const auto url = unless_refused<txinbox::Error>([&] { return parse_url(text); });
  if (!url || !is_scheme_of_server(url->scheme)) return;
  bool has_password = !url->password.empty();
  for (const auto& [name, value] : url->parameters)
    has_password = has_password || (name == "password" && !value.empty());
  if (!has_password) return;
  claim(txinbox::cli::holds_password(text), "a password is recognized in any text");
  claim(txinbox::cli::is_url_with_password("--db=" + std::string(text)), "a password is recognized in an option");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  claim_password_is_seen({reinterpret_cast<const char*>(data), size});
  const Pieces pieces(Fields(data, size));
  if (!is_scheme_of_server(pieces.scheme)) return 0;
  claim_round_trip(pieces);
  const bool holds_secret =
      std::string_view(reinterpret_cast<const char*>(data), size).find(secret) != std::string::npos;
  if (!holds_secret) claim_secret_is_kept(pieces);
  return 0;
}
