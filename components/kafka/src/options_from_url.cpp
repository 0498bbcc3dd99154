#include <algorithm>
#include <cstdlib>
#include <utility>

#include <txinbox/kafka.hpp>

#include "shared/component_url.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

using component::ComponentUrl;

constexpr std::string_view scheme = "kafka://";
constexpr std::string_view form = "a Kafka URL is kafka://HOST:PORT/TOPIC?group=NAME";

std::vector<std::string> split(const ComponentUrl& url, std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    parts.push_back(url.decoded(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool is_password(std::string_view name) {
  return name.find("password") != std::string_view::npos || name.find("secret") != std::string_view::npos ||
         name == "ssl.key.pem" || name == "sasl.jaas.config";
}

void set_parameter(const ComponentUrl& url, KafkaOptions& options, const std::string& name, std::string value) {
  if (is_password(name)) {
    url.refuse("it holds " + name +
               ", which other users of this machine can read; put the password into the environment variable "
               "TXINBOX_KAFKA_PASSWORD");
  }
  if (name == "group") {
    options.group = std::move(value);
  } else if (name == "dead_letters") {
    options.dead_letters = std::move(value);
  } else if (name == "message.timeout.ms") {
    options.dead_letter_timeout = std::chrono::milliseconds(url.number<int>(name, value, 1));
  } else if (name.find('.') != std::string::npos || name == "debug") {
    options.properties[name] = std::move(value);
  } else {
    url.refuse("unknown parameter " + name +
               "; there are group, dead_letters, debug, and the properties of librdkafka whose name has a dot");
  }
}

}  // namespace

KafkaOptions kafka_options_from_url(std::string_view url) {
  const ComponentUrl parsed(form, url, scheme);
  const std::string_view place = parsed.place();
  const auto slash = place.find('/');
  if (place.find('@') != std::string_view::npos) {
    parsed.refuse("a user is the parameter sasl.username, and the password is in TXINBOX_KAFKA_PASSWORD");
  }
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == place.size()) {
    parsed.refuse("the broker or the topic is missing");
  }
  KafkaOptions options;
  options.brokers = parsed.decoded(place.substr(0, slash));
  options.topics = split(parsed, place.substr(slash + 1));
  parsed.for_each_parameter(
      [&](const std::string& name, std::string value) { set_parameter(parsed, options, name, std::move(value)); });
  if (options.group.empty()) parsed.refuse("the parameter group is missing");
  const char* password = std::getenv("TXINBOX_KAFKA_PASSWORD");
  if (password != nullptr && *password != '\0') options.properties["sasl.password"] = password;
  return options;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
