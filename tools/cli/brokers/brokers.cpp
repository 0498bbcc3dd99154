#include "cli/brokers/brokers.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include <fmt/format.h>

#include "cli/brokers/find_calls.hpp"
#include "console/database_option.hpp"
#include "console/usage_error.hpp"

namespace txinbox::cli {
namespace {

/// The purposes of a server.
enum class Use { consume, publish, lease };

struct Server {
  std::array<std::string_view, 2> schemes;  ///< The second one, which may be empty, is with TLS.
  std::string_view component;
  std::string_view password;  ///< The environment variable for it.
  std::array<bool, 3> uses;   ///< Whether it has each `Use`, in their order.

  bool has(Use use) const { return uses[static_cast<std::size_t>(use)]; }
};

constexpr auto servers = std::to_array<Server>({
    // The booleans: whether messages are consumed from it, published to it, and whether it has leases.
    {{"kafka", ""}, "kafka", "TXINBOX_KAFKA_PASSWORD", {true, true, false}},
    {{"amqp", "amqps"}, "rabbitmq", "TXINBOX_RABBITMQ_PASSWORD", {true, true, false}},
    {{"rocketmq", "rocketmqs"}, "rocketmq", "TXINBOX_ROCKETMQ_SECRET", {true, true, false}},
    {{"http", "https"}, "http", "TXINBOX_HTTP_AUTHORIZATION", {false, true, false}},
    {{"redis", "rediss"}, "redis", "TXINBOX_REDIS_PASSWORD", {false, false, true}},
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
const BrokerCalls& calls_of(std::string_view url, Use use, std::string_view what) {
  const Server* const server = find_server(url);
  if (server == nullptr || !server->has(use)) {
    throw UsageError(fmt::format("{}: the URL must begin with {}", what, schemes_to(use)));
  }
  return find_calls(server->component);
}

void refuse_password(std::string_view url, std::string_view option) {
  if (!holds_password(url)) return;
  throw UsageError(fmt::format(
      "{} contains a password, which every user of this machine can read; put it into the environment variable {}",
      option, password_variables()));
}

}  // namespace

std::string build_option(std::string_view component) {
  std::string name(component);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format("-DTXINBOX_WITH_{}=ON", name);
}

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
