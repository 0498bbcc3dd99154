#include <algorithm>
#include <cstdlib>
#include <utility>

#include <txinbox/rabbitmq.hpp>

#include "shared/component_url.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

using component::ComponentUrl;

constexpr std::string_view form = "a RabbitMQ URL is amqp://USER@HOST:PORT/VHOST/QUEUE";

void set_parameter(const ComponentUrl& url, RabbitMqOptions& options, const std::string& name, std::string value) {
  if (name == "dead_letters") {
    options.dead_letters = std::move(value);
  } else if (name == "prefetch") {
    options.prefetch = url.number<std::uint16_t>(name, value);
  } else if (name == "heartbeat") {
    options.heartbeat = std::chrono::seconds(url.number<int>(name, value));
  } else if (name == "delivery_limit") {
    options.delivery_limit = url.number<int>(name, value);
  } else if (name == "exclusive" && (value == "true" || value == "false")) {
    options.exclusive = value == "true";
  } else if (name == "ca_file") {
    options.ca_file = std::move(value);
  } else if (name == "certificate_file") {
    options.certificate_file = std::move(value);
  } else if (name == "key_file") {
    options.key_file = std::move(value);
  } else {
    url.refuse("unknown parameter " + name +
               "; there are dead_letters, prefetch, heartbeat, delivery_limit, exclusive (true or false), ca_file, "
               "certificate_file and key_file");
  }
}

void set_place(const ComponentUrl& url, RabbitMqOptions& options) {
  const std::string_view place = url.place();
  const auto slash = std::min(place.find('/'), place.size());
  const auto authority = url.authority(place.substr(0, slash), "TXINBOX_RABBITMQ_PASSWORD");
  options.host = authority.host;
  if (!authority.user.empty()) options.user = authority.user;
  if (authority.port) options.port = *authority.port;
  const std::string_view path = place.substr(std::min(slash + 1, place.size()));
  const auto middle = path.find('/');
  if (middle == std::string_view::npos)
    url.refuse("the virtual host or the queue is missing; write %2F for the host /");
  options.vhost = url.decoded(path.substr(0, middle));
  options.queue = url.decoded(path.substr(middle + 1));
  if (options.vhost.empty() || options.queue.empty()) url.refuse("the virtual host or the queue is empty");
}

}  // namespace

RabbitMqOptions rabbitmq_options_from_url(std::string_view url) {
  RabbitMqOptions options;
  options.tls = url.starts_with("amqps://");
  const std::string_view scheme = options.tls ? "amqps://" : "amqp://";
  const ComponentUrl parsed(form, url.substr(std::min(scheme.size(), url.size())));
  if (!url.starts_with(scheme)) parsed.refuse("this URL has another scheme");
  set_place(parsed, options);
  parsed.for_each_parameter(
      [&](const std::string& name, std::string value) { set_parameter(parsed, options, name, std::move(value)); });
  const char* password = std::getenv("TXINBOX_RABBITMQ_PASSWORD");
  if (password != nullptr) options.password = password;
  return options;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
