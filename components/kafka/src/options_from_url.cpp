#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

using Properties = std::map<std::string, std::string>;

void refuse_password(const ComponentUrl& url, const std::string& name) {
  if (!is_password(name)) return;
  url.refuse("it holds " + name +
             ", which other users of this machine can read; put the password into the environment variable "
             "TXINBOX_KAFKA_PASSWORD");
}

bool is_property(const std::string& name) { return name.find('.') != std::string::npos || name == "debug"; }

void set_password(Properties& properties) {
  const char* password = std::getenv("TXINBOX_KAFKA_PASSWORD");
  if (password != nullptr && *password != '\0') properties["sasl.password"] = password;
}

void refuse_user(const ComponentUrl& url) {
  if (url.place().find('@') == std::string_view::npos) return;
  url.refuse("a user is the parameter sasl.username, and the password is in TXINBOX_KAFKA_PASSWORD");
}

void set_parameter(const ComponentUrl& url, KafkaOptions& options, const std::string& name, std::string value) {
  refuse_password(url, name);
  if (name == "group") {
    options.group = std::move(value);
  } else if (name == "dead_letters") {
    options.dead_letters = std::move(value);
  } else if (name == "message.timeout.ms") {
    options.dead_letter_timeout = std::chrono::milliseconds(url.number<int>(name, value, 1));
  } else if (is_property(name)) {
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
  refuse_user(parsed);
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == place.size()) {
    parsed.refuse("the broker or the topic is missing");
  }
  KafkaOptions options;
  options.brokers = parsed.decoded(place.substr(0, slash));
  options.topics = split(parsed, place.substr(slash + 1));
  parsed.for_each_parameter(
      [&](const std::string& name, std::string value) { set_parameter(parsed, options, name, std::move(value)); });
  if (options.group.empty()) parsed.refuse("the parameter group is missing");
  set_password(options.properties);
  return options;
}

KafkaPublisherOptions kafka_publisher_options_from_url(std::string_view url) {
  const ComponentUrl parsed("a Kafka URL of a publisher is kafka://HOST:PORT", url, scheme);
  refuse_user(parsed);
  if (parsed.place().empty()) parsed.refuse("the broker is missing");
  if (parsed.place().find('/') != std::string_view::npos) parsed.refuse("it names no topic: each message has its own");
  KafkaPublisherOptions options;
  options.brokers = parsed.decoded(parsed.place());
  parsed.for_each_parameter([&](const std::string& name, std::string value) {
    refuse_password(parsed, name);
    if (name == "message.timeout.ms") {
      parsed.refuse(
          "message.timeout.ms is not a parameter; the option timeout, or --timeout of the command, is this time");
    }
    constexpr std::array<std::string_view, 3> of_consumers{"group.instance.id", "session.timeout.ms",
                                                           "max.poll.interval.ms"};
    if (!is_property(name) || std::ranges::find(of_consumers, name) != of_consumers.end()) {
      parsed.refuse(name +
                    " is not a parameter of a publisher; there are debug, and the properties of librdkafka "
                    "whose name has a dot, but not those of a consumer");
    }
    options.properties[name] = std::move(value);
  });
  set_password(options.properties);
  return options;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
