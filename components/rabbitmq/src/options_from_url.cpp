#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <amqp.h>
#include <txinbox/error.hpp>
#include <txinbox/rabbitmq.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

[[noreturn]] void refuse(const std::string& text) {
  throw Error(ErrorCode::invalid_argument, "a RabbitMQ URL is amqp://USER@HOST:PORT/VHOST/QUEUE: " + text);
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
  if (error != std::errc() || end != text.data() + text.size()) refuse(std::string(name) + " is not a number in range");
  return number;
}

void set_parameter(RabbitMqOptions& options, const std::string& name, std::string value) {
  if (name == "dead_letters") {
    options.dead_letters = std::move(value);
  } else if (name == "prefetch") {
    options.prefetch = number_of<std::uint16_t>(name, value);
  } else if (name == "heartbeat") {
    options.heartbeat = std::chrono::seconds(number_of<int>(name, value));
  } else if (name == "exclusive" && (value == "true" || value == "false")) {
    options.exclusive = value == "true";
  } else if (name == "ca_file") {
    options.ca_file = std::move(value);
  } else if (name == "certificate_file") {
    options.certificate_file = std::move(value);
  } else if (name == "key_file") {
    options.key_file = std::move(value);
  } else {
    refuse("unknown parameter " + name +
           "; there are dead_letters, prefetch, heartbeat, exclusive (true or false), ca_file, certificate_file and "
           "key_file");
  }
}

void set_place(RabbitMqOptions& options, std::string_view place) {
  const auto slash = std::min(place.find('/'), place.size());
  std::string_view authority = place.substr(0, slash);
  std::string_view path = place.substr(std::min(slash + 1, place.size()));
  if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
    const std::string_view user = authority.substr(0, at);
    if (user.find(':') != std::string_view::npos) {
      refuse(
          "it holds a password, which other users of this machine can read; put it into the environment variable "
          "TXINBOX_RABBITMQ_PASSWORD");
    }
    options.user = decoded(user);
    authority.remove_prefix(at + 1);
  }
  const auto bracket = authority.find(']');  // [::1]:5672
  const auto colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  options.host =
      decoded(authority.substr(authority.starts_with('[') ? 1 : 0,
                               std::min({colon, bracket, authority.size()}) - (authority.starts_with('[') ? 1 : 0)));
  if (colon != std::string_view::npos) options.port = number_of<std::uint16_t>("the port", authority.substr(colon + 1));
  const auto middle = path.find('/');
  if (middle == std::string_view::npos) refuse("the virtual host or the queue is missing; write %2F for the host /");
  options.vhost = decoded(path.substr(0, middle));
  options.queue = decoded(path.substr(middle + 1));
  if (options.host.empty() || options.vhost.empty() || options.queue.empty()) {
    refuse("the host, the virtual host or the queue is empty");
  }
}

}  // namespace

RabbitMqOptions rabbitmq_options_from_url(std::string_view url) {
  RabbitMqOptions options;
  if (url.starts_with("amqps://")) {
    options.tls = true;
    url.remove_prefix(8);
  } else if (url.starts_with("amqp://")) {
    url.remove_prefix(7);
  } else {
    refuse("this one begins otherwise");
  }
  const auto question = std::min(url.find('?'), url.size());
  set_place(options, url.substr(0, question));
  std::string_view query = url.substr(std::min(question + 1, url.size()));
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const auto equals = pair.find('=');
    if (equals == std::string_view::npos) refuse("a parameter has no value");
    set_parameter(options, decoded(pair.substr(0, equals)), decoded(pair.substr(equals + 1)));
  }
  const char* password = std::getenv("TXINBOX_RABBITMQ_PASSWORD");
  if (password != nullptr) options.password = password;
  return options;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
