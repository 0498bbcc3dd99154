#include <algorithm>
#include <cstdlib>
#include <utility>

#include <txinbox/rocketmq.hpp>

#include "shared/component_url.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

using component::ComponentUrl;

constexpr std::string_view form = "a RocketMQ URL is rocketmq://ACCESS_KEY@HOST:PORT/TOPIC?group=GROUP";
constexpr std::string_view publisher_form = "the URL of a RocketMQ publisher is rocketmq://ACCESS_KEY@HOST:PORT";

ComponentUrl begin(std::string_view form_of_url, std::string_view url, RocketMqServer& server) {
  server.tls = url.starts_with("rocketmqs://");
  const ComponentUrl parsed(form_of_url, url, server.tls ? "rocketmqs://" : "rocketmq://");
  const std::string_view place = parsed.place();
  const auto authority = parsed.authority(place.substr(0, place.find('/')), "TXINBOX_ROCKETMQ_SECRET");
  server.host = authority.host;
  server.access_key = authority.user;
  if (authority.port) server.port = *authority.port;
  const char* secret = std::getenv("TXINBOX_ROCKETMQ_SECRET");
  if (secret != nullptr && !server.access_key.empty()) server.secret = secret;
  return parsed;
}

void set_parameter(const ComponentUrl& url, RocketMqOptions& options, const std::string& name, std::string value) {
  if (name == "group") {
    options.group = std::move(value);
  } else if (name == "tags") {
    options.tags = std::move(value);
  } else if (name == "invisible") {
    options.invisible = std::chrono::seconds(url.number<int>(name, value));
  } else if (name == "receives") {
    options.receives = url.number<std::uint16_t>(name, value);
  } else if (!component::set_tls_file(options.server, name, value)) {
    url.refuse("unknown parameter " + name +
               "; there are group, tags, invisible (seconds), receives, ca_file, certificate_file and key_file");
  }
}

}  // namespace

RocketMqOptions rocketmq_options_from_url(std::string_view url) {
  RocketMqOptions options;
  const ComponentUrl parsed = begin(form, url, options.server);
  const std::string_view place = parsed.place();
  const auto slash = std::min(place.find('/'), place.size());
  options.topic = parsed.decoded(place.substr(std::min(slash + 1, place.size())));
  if (options.topic.empty()) parsed.refuse("the topic is missing");
  parsed.for_each_parameter(
      [&](const std::string& name, std::string value) { set_parameter(parsed, options, name, std::move(value)); });
  if (options.group.empty()) parsed.refuse("the group is missing: add ?group=NAME");
  return options;
}

RocketMqPublisherOptions rocketmq_publisher_options_from_url(std::string_view url) {
  RocketMqPublisherOptions options;
  const ComponentUrl parsed = begin(publisher_form, url, options.server);
  if (parsed.place().find('/') != std::string_view::npos) {
    parsed.refuse("it names no topic: each message has its own");
  }
  parsed.for_each_parameter([&](const std::string& name, std::string value) {
    if (name == "fifo" && (value == "true" || value == "false")) {
      options.fifo = value == "true";
    } else if (!component::set_tls_file(options.server, name, value)) {
      parsed.refuse("unknown parameter " + name +
                    "; there are fifo (true or false), ca_file, certificate_file and key_file");
    }
  });
  return options;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
