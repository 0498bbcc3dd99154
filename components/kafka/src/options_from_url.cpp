#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <txinbox/error.hpp>
#include <txinbox/kafka.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorCode::invalid_argument, text); }

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
    if (low < 0) refuse("the Kafka URL has a % that two hexadecimal digits do not follow; write %25 for %");
    result += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return result;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    parts.push_back(decoded(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool is_password(std::string_view name) {
  return name.find("password") != std::string_view::npos || name.find("secret") != std::string_view::npos ||
         name == "ssl.key.pem" || name == "sasl.jaas.config";
}

std::chrono::milliseconds milliseconds_of(const std::string& name, const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1) {
    refuse("the Kafka URL's " + name + " is not a number of milliseconds");
  }
  return std::chrono::milliseconds(number);
}

void set_parameter(KafkaOptions& options, const std::string& name, std::string value) {
  if (is_password(name)) {
    refuse("the Kafka URL holds " + name +
           ", which other users of this machine can read; put the password into the environment variable "
           "TXINBOX_KAFKA_PASSWORD");
  }
  if (name == "group") {
    options.group = std::move(value);
  } else if (name == "instance_id") {
    options.instance_id = std::move(value);
  } else if (name == "dead_letters") {
    options.dead_letters = std::move(value);
  } else if (name == "session.timeout.ms") {
    options.session_timeout = milliseconds_of(name, value);
  } else if (name == "max.poll.interval.ms") {
    options.max_poll_interval = milliseconds_of(name, value);
  } else if (name.find('.') != std::string::npos) {
    options.properties[name] = std::move(value);
  } else {
    refuse("the Kafka URL has an unknown parameter " + name +
           "; there are group, instance_id, dead_letters and the properties of librdkafka");
  }
}

}  // namespace

KafkaOptions kafka_options_from_url(std::string_view url) {
  constexpr std::string_view scheme = "kafka://";
  constexpr const char* form = "a Kafka URL is kafka://HOST:PORT/TOPIC?group=NAME: ";
  if (!url.starts_with(scheme)) refuse(std::string(form) + "this one begins otherwise");
  url.remove_prefix(scheme.size());
  const auto question = std::min(url.find('?'), url.size());
  std::string_view query = url.substr(std::min(question + 1, url.size()));
  const std::string_view place = url.substr(0, question);
  const auto slash = place.find('/');
  if (place.find('@') != std::string_view::npos) {
    refuse(std::string(form) + "a user is the parameter sasl.username, and the password is in TXINBOX_KAFKA_PASSWORD");
  }
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == place.size()) {
    refuse(std::string(form) + "the broker or the topic is missing");
  }
  KafkaOptions options;
  options.brokers = decoded(place.substr(0, slash));
  options.topics = split(place.substr(slash + 1), ',');
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const auto equals = pair.find('=');
    if (equals == std::string_view::npos) refuse(std::string(form) + "a parameter has no value");
    set_parameter(options, decoded(pair.substr(0, equals)), decoded(pair.substr(equals + 1)));
  }
  if (options.group.empty()) refuse(std::string(form) + "the parameter group is missing");
  const char* password = std::getenv("TXINBOX_KAFKA_PASSWORD");
  if (password != nullptr && *password != '\0') options.properties["sasl.password"] = password;
  return options;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
