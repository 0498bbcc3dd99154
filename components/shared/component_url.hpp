#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <txinbox/error.hpp>

namespace txinbox::component {

/// Reads the URL of a broker or of a store: SCHEME://USER@HOST:PORT/PATH?NAME=VALUE&NAME=VALUE, percent-encoded (RFC
/// 3986). Each component decides what the parts mean.
///
/// Errors: each function throws `Error` invalid_argument. Its text begins with the form of the URL and names the
/// invalid part. It never contains a value, which may be a password.
class ComponentUrl {
 public:
  /// The part of the URL before the path.
  struct Authority {
    std::string user;
    std::string host;  ///< Without the brackets of an IPv6 address.
    std::optional<std::uint16_t> port;
  };

  /// `form`: for example "a Redis URL is redis://USER@HOST:PORT/DATABASE". `scheme`: for example "redis://". `form` and
  /// `url` must outlive this object.
  ComponentUrl(std::string_view form, std::string_view url, std::string_view scheme) : form_(form) {
    if (!url.starts_with(scheme)) refuse("this URL has another scheme");
    url.remove_prefix(scheme.size());
    const auto question = std::min(url.find('?'), url.size());
    place_ = url.substr(0, question);
    query_ = url.substr(std::min(question + 1, url.size()));
  }

  /// Returns the part before the question mark, not decoded.
  std::string_view place() const noexcept { return place_; }

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::invalid_argument, std::string(form_) + ": " + why);
  }

  std::string decoded(std::string_view text) const {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '%') {
        result += text[i];
        continue;
      }
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
      if (low < 0) refuse("a % is not followed by two hexadecimal digits; write %25 for %");
      if (high == 0 && low == 0) refuse("it holds %00");
      result += static_cast<char>(high * 16 + low);
      i += 2;
    }
    return result;
  }

  template <class Number>
  Number number(std::string_view name, std::string_view text, Number least = 0) const {
    Number value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least) {
      refuse(std::string(name) + " is not a number in range");
    }
    return value;
  }

  /// `password_variable`: if the URL contains a password, the error text names this environment variable.
  Authority authority(std::string_view text, const std::string& password_variable) const {
    Authority parts;
    if (const auto at = text.rfind('@'); at != std::string_view::npos) {
      const std::string_view user = text.substr(0, at);
      if (user.find(':') != std::string_view::npos) {
        refuse(
            "it holds a password, which other users of this machine can read; put it into the environment variable " +
            password_variable);
      }
      parts.user = decoded(user);
      text.remove_prefix(at + 1);
    }
    auto colon = text.find(':');
    if (text.starts_with('[')) {  // [::1]:5672
      const auto bracket = text.find(']');
      if (bracket == std::string_view::npos) refuse("a bracket is not closed");
      parts.host = text.substr(1, bracket - 1);
      colon = text.find(':', bracket);
    } else {
      parts.host = decoded(text.substr(0, colon));
    }
    if (parts.host.empty()) refuse("the host is missing");
    if (colon != std::string_view::npos) parts.port = number<std::uint16_t>("the port", text.substr(colon + 1));
    return parts;
  }

  /// Calls `use(name, value)` with each parameter, decoded, in the order of the URL.
  template <class Use>
  void for_each_parameter(const Use& use) const {
    for (std::string_view rest = query_; !rest.empty();) {
      const auto end = std::min(rest.find('&'), rest.size());
      const std::string_view pair = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      const auto equals = pair.find('=');
      if (equals == std::string_view::npos) refuse("a parameter has no value");
      use(decoded(pair.substr(0, equals)), decoded(pair.substr(equals + 1)));
    }
  }

 private:
  static int hex_digit(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }

  std::string_view form_;
  std::string_view place_;
  std::string_view query_;
};

/// Sets the file for TLS that the parameter of a URL names. Returns false for any other parameter.
template <class Server>
bool set_tls_file(Server& server, std::string_view parameter, std::string& value) {
  std::string* const file = parameter == "ca_file"            ? &server.ca_file
                            : parameter == "certificate_file" ? &server.certificate_file
                            : parameter == "key_file"         ? &server.key_file
                                                              : nullptr;
  if (file != nullptr) *file = std::move(value);
  return file != nullptr;
}

}  // namespace txinbox::component
