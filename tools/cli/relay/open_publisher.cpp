#include "cli/relay/open_publisher.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "console/database_option.hpp"
#include "console/usage_error.hpp"

#ifdef TXINBOX_CLI_HTTP
#include <txinbox/http/httplib_sender.hpp>
#include <txinbox/http_publisher.hpp>
#endif
#ifdef TXINBOX_CLI_KAFKA
#include <txinbox/kafka_publisher.hpp>
#endif
#ifdef TXINBOX_CLI_RABBITMQ
#include <txinbox/rabbitmq_publisher.hpp>
#endif
#ifdef TXINBOX_CLI_ROCKETMQ
#include <txinbox/rocketmq_publisher.hpp>
#endif

namespace txinbox::cli {
namespace {

using OpenPublisher = Publisher (*)(const std::string& url, std::chrono::milliseconds timeout);

struct PublisherKind {
  std::string_view scheme;
  std::string_view option;  ///< The CMake option that builds the component in.
  OpenPublisher open;       ///< Null: the component is not built in.
};

#ifdef TXINBOX_CLI_KAFKA
Publisher to_kafka(const std::string& url, std::chrono::milliseconds timeout) {
  KafkaPublisherOptions options = kafka_publisher_options_from_url(url);
  options.timeout = timeout;
  return kafka_publisher(options);
}
#else
constexpr OpenPublisher to_kafka = nullptr;
#endif

#ifdef TXINBOX_CLI_RABBITMQ
Publisher to_rabbitmq(const std::string& url, std::chrono::milliseconds timeout) {
  RabbitMqPublisherOptions options = rabbitmq_publisher_options_from_url(url);
  options.timeout = timeout;
  return rabbitmq_publisher(options);
}
#else
constexpr OpenPublisher to_rabbitmq = nullptr;
#endif

#ifdef TXINBOX_CLI_ROCKETMQ
Publisher to_rocketmq(const std::string& url, std::chrono::milliseconds timeout) {
  RocketMqPublisherOptions options = rocketmq_publisher_options_from_url(url);
  options.timeout = timeout;
  return rocketmq_publisher(options);
}
#else
constexpr OpenPublisher to_rocketmq = nullptr;
#endif

#ifdef TXINBOX_CLI_HTTP
Publisher to_webhook(const std::string& url, std::chrono::milliseconds timeout) {
  HttpPublisherOptions options = http_publisher_options_from_url(url);
  options.timeout = timeout;
  return http_publisher(options, http::httplib_sender(options));
}
#else
constexpr OpenPublisher to_webhook = nullptr;
#endif

constexpr std::array publisher_kinds{PublisherKind{"kafka", "TXINBOX_WITH_KAFKA", to_kafka},
                                     PublisherKind{"amqp", "TXINBOX_WITH_RABBITMQ", to_rabbitmq},
                                     PublisherKind{"amqps", "TXINBOX_WITH_RABBITMQ", to_rabbitmq},
                                     PublisherKind{"rocketmq", "TXINBOX_WITH_ROCKETMQ", to_rocketmq},
                                     PublisherKind{"rocketmqs", "TXINBOX_WITH_ROCKETMQ", to_rocketmq},
                                     PublisherKind{"http", "TXINBOX_WITH_HTTP", to_webhook},
                                     PublisherKind{"https", "TXINBOX_WITH_HTTP", to_webhook}};

}  // namespace

Publisher open_publisher(const std::string& url, std::chrono::milliseconds timeout) {
  if (holds_password(url)) {
    throw UsageError(
        "--to contains a password, which every user of this machine can read; put it into the environment variable "
        "TXINBOX_KAFKA_PASSWORD, TXINBOX_RABBITMQ_PASSWORD, TXINBOX_ROCKETMQ_SECRET or TXINBOX_HTTP_AUTHORIZATION");
  }
  const auto* kind =
      std::ranges::find(publisher_kinds, std::string_view(url).substr(0, url.find("://")), &PublisherKind::scheme);
  if (kind == publisher_kinds.end()) {
    throw UsageError(
        "--to: the URL of the broker must begin with kafka://, amqp://, amqps://, rocketmq://, "
        "rocketmqs://, http:// or https://");
  }
  if (kind->open == nullptr) {
    throw UsageError(
        fmt::format("this txinbox was built without {}: build it with -D{}=ON", kind->scheme, kind->option));
  }
  return kind->open(url, timeout);
}

bool is_publisher_url_with_password(std::string_view argument) {
  if (argument.starts_with("-")) argument.remove_prefix(std::min(argument.find('='), argument.size() - 1) + 1);
  const auto end = argument.find("://");
  if (end == std::string_view::npos) return false;
  return std::ranges::find(publisher_kinds, argument.substr(0, end), &PublisherKind::scheme) != publisher_kinds.end() &&
         holds_password(argument);
}

}  // namespace txinbox::cli
