#include "cli/brokers.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

#include "console/database_option.hpp"
#include "console/usage_error.hpp"

#ifdef TXINBOX_CLI_KAFKA
#include <txinbox/kafka.hpp>
#endif
#ifdef TXINBOX_CLI_RABBITMQ
#include <txinbox/rabbitmq.hpp>
#endif
#ifdef TXINBOX_CLI_ROCKETMQ
#include <txinbox/rocketmq.hpp>
#endif
#ifdef TXINBOX_CLI_HTTP
#include <txinbox/http/httplib_sender.hpp>
#include <txinbox/http_publisher.hpp>
#endif
#ifdef TXINBOX_CLI_REDIS
#include <txinbox/redis.hpp>
#endif

namespace txinbox::cli {
namespace {

using OpenSource = std::unique_ptr<Source> (*)(const std::string& url, const std::string& dead_letters,
                                               std::size_t held);
using OpenPublisher = Publisher (*)(const std::string& url, std::chrono::milliseconds timeout);
using OpenRepublisher = Republisher (*)(const std::string& url);
using Diagnose = std::vector<Finding> (*)(const std::string& url);

/// The calls of a component. If it is not built in, they are null.
struct Calls {
  OpenSource open_source = nullptr;
  OpenPublisher open_publisher = nullptr;
  OpenRepublisher open_republisher = nullptr;  ///< Each server that is consumed from has one.
  Diagnose diagnose = nullptr;

  bool are_built_in() const noexcept {
    return open_source != nullptr || open_publisher != nullptr || diagnose != nullptr;
  }
};

/// The publisher with the options of the URL and this time-out.
template <auto read_options, auto open>
Publisher open_with_timeout(const std::string& url, std::chrono::milliseconds timeout) {
  auto options = read_options(url);
  options.timeout = timeout;
  return open(options);
}

#ifdef TXINBOX_CLI_KAFKA
std::unique_ptr<Source> open_kafka_source(const std::string& url, const std::string& dead_letters, std::size_t) {
  KafkaOptions options = kafka_options_from_url(url);
  if (!dead_letters.empty()) options.dead_letters = dead_letters;
  return open_kafka(options);
}
Republisher open_kafka_republisher(const std::string& url) {
  const KafkaOptions options = kafka_options_from_url(url);
  return kafka_republisher({.brokers = options.brokers, .properties = options.properties});
}
constexpr Calls kafka{.open_source = open_kafka_source,
                      .open_publisher = open_with_timeout<kafka_publisher_options_from_url, kafka_publisher>,
                      .open_republisher = open_kafka_republisher};
#else
constexpr Calls kafka{};
#endif

#ifdef TXINBOX_CLI_RABBITMQ
std::unique_ptr<Source> open_rabbitmq_source(const std::string& url, const std::string& dead_letters,
                                             std::size_t held) {
  RabbitMqOptions options = rabbitmq_options_from_url(url);
  if (!dead_letters.empty()) options.dead_letters = dead_letters;
  if (options.prefetch == RabbitMqOptions().prefetch) options.prefetch = std::max(options.prefetch, prefetch_for(held));
  return open_rabbitmq(options);
}
Republisher open_rabbitmq_republisher(const std::string& url) {
  return rabbitmq_republisher({.server = rabbitmq_options_from_url(url).server});
}
constexpr Calls rabbitmq{.open_source = open_rabbitmq_source,
                         .open_publisher = open_with_timeout<rabbitmq_publisher_options_from_url, rabbitmq_publisher>,
                         .open_republisher = open_rabbitmq_republisher};
#else
constexpr Calls rabbitmq{};
#endif

#ifdef TXINBOX_CLI_ROCKETMQ
std::unique_ptr<Source> open_rocketmq_source(const std::string& url, const std::string& dead_letters, std::size_t) {
  if (!dead_letters.empty()) {
    throw UsageError(
        "--dead-letters is not for RocketMQ: the broker has a dead-letter queue for each group, %DLQ%GROUP");
  }
  return open_rocketmq(rocketmq_options_from_url(url));
}
Republisher open_rocketmq_republisher(const std::string& url) {
  return rocketmq_republisher({.server = rocketmq_options_from_url(url).server});
}
constexpr Calls rocketmq{.open_source = open_rocketmq_source,
                         .open_publisher = open_with_timeout<rocketmq_publisher_options_from_url, rocketmq_publisher>,
                         .open_republisher = open_rocketmq_republisher};
#else
constexpr Calls rocketmq{};
#endif

#ifdef TXINBOX_CLI_HTTP
Publisher open_webhook(const HttpPublisherOptions& options) {
  return http_publisher(options, http::httplib_sender(options));
}
constexpr Calls webhook{.open_publisher = open_with_timeout<http_publisher_options_from_url, open_webhook>};
#else
constexpr Calls webhook{};
#endif

#ifdef TXINBOX_CLI_REDIS
std::vector<Finding> diagnose_redis_at(const std::string& url) { return diagnose_redis(redis_options_from_url(url)); }
constexpr Calls redis{.diagnose = diagnose_redis_at};
#else
constexpr Calls redis{};
#endif

/// The purposes of a server.
enum class Use { consume, publish, lease };

struct Server {
  std::array<std::string_view, 2> schemes;  ///< The second one, which may be empty, is with TLS.
  std::string_view component;
  std::string_view password;  ///< The environment variable for it.
  std::array<bool, 3> uses;   ///< Whether it has each `Use`, in their order.
  Calls calls;

  bool has(Use use) const { return uses[static_cast<std::size_t>(use)]; }
};

constexpr auto servers = std::to_array<Server>({
    // The booleans: whether messages are consumed from it, published to it, and whether it has leases.
    {{"kafka", ""}, "kafka", "TXINBOX_KAFKA_PASSWORD", {true, true, false}, kafka},
    {{"amqp", "amqps"}, "rabbitmq", "TXINBOX_RABBITMQ_PASSWORD", {true, true, false}, rabbitmq},
    {{"rocketmq", "rocketmqs"}, "rocketmq", "TXINBOX_ROCKETMQ_SECRET", {true, true, false}, rocketmq},
    {{"http", "https"}, "http", "TXINBOX_HTTP_AUTHORIZATION", {false, true, false}, webhook},
    {{"redis", "rediss"}, "redis", "TXINBOX_REDIS_PASSWORD", {false, false, true}, redis},
});

/// Null if no server has the scheme of the URL.
const Server* find_server(std::string_view url) {
  const auto end = url.find("://");
  if (end == std::string_view::npos) return nullptr;
  const auto* const found = std::ranges::find_if(servers, [scheme = url.substr(0, end)](const Server& each) {
    return !scheme.empty() && std::ranges::find(each.schemes, scheme) != each.schemes.end();
  });
  return found == servers.end() ? nullptr : found;
}

/// "A, B or C".
std::string any_of(const std::vector<std::string>& all) {
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) text += i + 1 == all.size() ? " or " : ", ";
    text += all[i];
  }
  return text;
}

std::string schemes_to(Use use) {
  std::vector<std::string> schemes;
  for (const Server& each : servers) {
    for (const std::string_view scheme : each.schemes) {
      if (each.has(use) && !scheme.empty()) schemes.push_back(std::string(scheme) + "://");
    }
  }
  return any_of(schemes);
}

/// `what` names the URL in an error: "--to".
const Calls& calls_of(std::string_view url, Use use, std::string_view what) {
  const Server* const server = find_server(url);
  if (server == nullptr || !server->has(use)) {
    throw UsageError(fmt::format("{}: the URL must begin with {}", what, schemes_to(use)));
  }
  if (!server->calls.are_built_in()) {
    std::string option(server->component);
    std::ranges::transform(option, option.begin(), [](unsigned char c) { return std::toupper(c); });
    throw UsageError(fmt::format("this txinbox was built without {}: build it with -DTXINBOX_WITH_{}=ON",
                                 server->component, option));
  }
  return server->calls;
}

void refuse_password(std::string_view url, std::string_view option) {
  if (!holds_password(url)) return;
  throw UsageError(fmt::format(
      "{} contains a password, which every user of this machine can read; put it into the environment variable {}",
      option, password_variables()));
}

}  // namespace

std::string source_url(const std::string& option) {
  if (!option.empty()) {
    refuse_password(option, "--from");
    (void)calls_of(option, Use::consume, "--from");
    return option;
  }
  const char* const variable = std::getenv("TXINBOX_FROM");
  if (variable == nullptr || *variable == '\0') return {};
  (void)calls_of(variable, Use::consume, "TXINBOX_FROM");
  return variable;
}

std::unique_ptr<Source> open_source(const std::string& url, const std::string& dead_letters, std::size_t held) {
  return calls_of(url, Use::consume, "--from").open_source(url, dead_letters, held);
}

Republisher open_republisher(const std::string& url) {
  return calls_of(url, Use::consume, "--from").open_republisher(url);
}

std::uint16_t prefetch_for(std::size_t held) noexcept {
  constexpr std::size_t waiting = 600;
  constexpr std::size_t most = std::numeric_limits<std::uint16_t>::max();
  return static_cast<std::uint16_t>(std::min(held + waiting, most));
}

Publisher open_publisher(const std::string& url, std::chrono::milliseconds timeout) {
  refuse_password(url, "--to");
  return calls_of(url, Use::publish, "--to").open_publisher(url, timeout);
}

bool names_lease_server(std::string_view url) {
  const Server* const server = find_server(url);
  return server != nullptr && server->has(Use::lease);
}

std::vector<Finding> diagnose_lease_server(const std::string& url) {
  return calls_of(url, Use::lease, "--db").diagnose(url);
}

bool is_broker_url_with_password(std::string_view argument) {
  const auto value = value_of_argument(argument);
  return find_server(value) != nullptr && holds_password(value);
}

std::string password_variables() {
  std::vector<std::string> variables(servers.size());
  std::ranges::transform(servers, variables.begin(), &Server::password);
  return any_of(variables);
}

}  // namespace txinbox::cli
