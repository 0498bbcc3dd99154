#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include <txinbox/error.hpp>
#include <txinbox/redis.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

[[noreturn]] void refuse(const std::string& text) {
  throw Error(ErrorCode::invalid_argument, "a Redis URL is redis://USER@HOST:PORT/DATABASE: " + text);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low < 0) refuse("a % is not followed by two hexadecimal digits; write %25 for %");
    result += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return result;
}

template <class Number>
Number number_of(std::string_view name, std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    refuse(std::string(name) + " is not a number in range");
  }
  return number;
}

void set_parameter(RedisOptions& options, const std::string& name, std::string value) {
  if (name == "prefix") {
    options.prefix = std::move(value);
  } else if (name == "keep") {
    options.keep = std::chrono::seconds(number_of<int>(name, value));
  } else if (name == "timeout") {
    options.timeout = std::chrono::milliseconds(number_of<int>(name, value));
  } else if (name == "wait_replicas") {
    options.wait_replicas = number_of<int>(name, value);
  } else if (name == "replica_timeout") {
    options.replica_timeout = std::chrono::milliseconds(number_of<int>(name, value));
  } else {
    // Its name is not shown: it can be a password.
    refuse("unknown parameter; there are prefix, keep, timeout, wait_replicas and replica_timeout");
  }
}

void set_server(RedisOptions& options, std::string_view authority) {
  if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
    const std::string_view user = authority.substr(0, at);
    if (user.find(':') != std::string_view::npos) {
      refuse(
          "it holds a password, which other users of this machine can read; put it into the environment variable "
          "TXINBOX_REDIS_PASSWORD");
    }
    options.user = decoded(user);
    authority.remove_prefix(at + 1);
  }
  const auto bracket = authority.find(']');  // [::1]:6379
  const auto colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (authority.starts_with('[')) {
    if (bracket == std::string_view::npos) refuse("a bracket is not closed");
    options.host = authority.substr(1, bracket - 1);
  } else {
    options.host = decoded(authority.substr(0, colon));
  }
  if (colon != std::string_view::npos) options.port = number_of<std::uint16_t>("the port", authority.substr(colon + 1));
  if (options.host.empty()) refuse("the host is missing");
}

}  // namespace

RedisOptions redis_options_from_url(std::string_view url) {
  constexpr std::string_view scheme = "redis://";
  if (url.starts_with("rediss://")) {
    refuse("rediss:// asks for TLS, which this component does not have; use a tunnel (stunnel) to the server");
  }
  if (!url.starts_with(scheme)) refuse("this one begins otherwise");
  url.remove_prefix(scheme.size());

  RedisOptions options;
  const auto question = std::min(url.find('?'), url.size());
  const std::string_view place = url.substr(0, question);
  std::string_view query = url.substr(std::min(question + 1, url.size()));
  const auto slash = std::min(place.find('/'), place.size());
  set_server(options, place.substr(0, slash));
  const std::string_view database = place.substr(std::min(slash + 1, place.size()));
  if (!database.empty()) options.database = number_of<int>("the database", database);
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const auto equals = pair.find('=');
    if (equals == std::string_view::npos) refuse("a parameter has no value");
    set_parameter(options, decoded(pair.substr(0, equals)), decoded(pair.substr(equals + 1)));
  }
  const char* password = std::getenv("TXINBOX_REDIS_PASSWORD");
  if (password != nullptr) options.password = password;
  return options;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
