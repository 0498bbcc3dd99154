#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include <txinbox/rabbitmq.hpp>

#include "shared/component_url.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

using component::ComponentUrl;

constexpr std::string_view form = "a RabbitMQ URL is amqp://USER@HOST:PORT/VHOST/QUEUE";
constexpr std::string_view publisher_form = "the URL of a RabbitMQ publisher is amqp://USER@HOST:PORT/VHOST/EXCHANGE";

ComponentUrl begin(std::string_view form_of_url, std::string_view url, RabbitMqServer& server) {
  server.tls = url.starts_with("amqps://");
  return {form_of_url, url, server.tls ? "amqps://" : "amqp://"};
}

/// Reads the server. Returns the name after the virtual host: of the queue, or of the exchange.
std::optional<std::string> read_place(const ComponentUrl& url, RabbitMqServer& server) {
  const std::string_view place = url.place();
  const auto slash = std::min(place.find('/'), place.size());
  const auto authority = url.authority(place.substr(0, slash), "TXINBOX_RABBITMQ_PASSWORD");
  server.host = authority.host;
  if (!authority.user.empty()) server.user = authority.user;
  if (authority.port) server.port = *authority.port;
  const char* password = std::getenv("TXINBOX_RABBITMQ_PASSWORD");
  if (password != nullptr) server.password = password;
  const std::string_view path = place.substr(std::min(slash + 1, place.size()));
  const auto middle = path.find('/');
  server.vhost = url.decoded(path.substr(0, middle));
  if (server.vhost.empty()) url.refuse("the virtual host is missing; write %2F for the host /");
  if (middle == std::string_view::npos) return std::nullopt;
  std::string name = url.decoded(path.substr(middle + 1));
  if (name.empty()) url.refuse("the name after the virtual host is empty");
  return name;
}

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
  } else if (!component::set_tls_file(options.server, name, value)) {
    url.refuse("unknown parameter " + name +
               "; there are dead_letters, prefetch, heartbeat, delivery_limit, exclusive (true or false), ca_file, "
               "certificate_file and key_file");
  }
}

}  // namespace

RabbitMqOptions rabbitmq_options_from_url(std::string_view url) {
  RabbitMqOptions options;
  const ComponentUrl parsed = begin(form, url, options.server);
  auto queue = read_place(parsed, options.server);
  if (!queue) parsed.refuse("the virtual host or the queue is missing; write %2F for the virtual host /");
  options.queue = std::move(*queue);
  parsed.for_each_parameter(
      [&](const std::string& name, std::string value) { set_parameter(parsed, options, name, std::move(value)); });
  return options;
}

RabbitMqPublisherOptions rabbitmq_publisher_options_from_url(std::string_view url) {
  RabbitMqPublisherOptions options;
  const ComponentUrl parsed = begin(publisher_form, url, options.server);
  options.exchange = read_place(parsed, options.server).value_or("");
  parsed.for_each_parameter([&](const std::string& name, std::string value) {
    if (!component::set_tls_file(options.server, name, value)) {
      parsed.refuse("unknown parameter " + name + "; there are ca_file, certificate_file and key_file");
    }
  });
  return options;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
