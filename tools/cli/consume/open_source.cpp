#include "cli/consume/open_source.hpp"

#include <algorithm>
#include <array>
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

namespace txinbox::cli {
namespace {

using Open = std::unique_ptr<Source> (*)(const std::string& url, const std::string& dead_letters, std::size_t held);

struct Kind {
  std::string_view scheme;
  std::string_view option;  ///< The CMake option that builds the component in.
  Open open;                ///< Null: the component is not built in.
};

#ifdef TXINBOX_CLI_KAFKA
std::unique_ptr<Source> kafka(const std::string& url, const std::string& dead_letters, std::size_t /*held*/) {
  KafkaOptions options = kafka_options_from_url(url);
  if (!dead_letters.empty()) options.dead_letters = dead_letters;
  return open_kafka(options);
}
#else
constexpr Open kafka = nullptr;
#endif

#ifdef TXINBOX_CLI_RABBITMQ
std::unique_ptr<Source> rabbitmq(const std::string& url, const std::string& dead_letters, std::size_t held) {
  RabbitMqOptions options = rabbitmq_options_from_url(url);
  if (!dead_letters.empty()) options.dead_letters = dead_letters;
  if (options.prefetch == RabbitMqOptions().prefetch) options.prefetch = std::max(options.prefetch, prefetch_for(held));
  return open_rabbitmq(options);
}
#else
constexpr Open rabbitmq = nullptr;
#endif

#ifdef TXINBOX_CLI_ROCKETMQ
std::unique_ptr<Source> rocketmq(const std::string& url, const std::string& dead_letters, std::size_t /*held*/) {
  if (!dead_letters.empty()) {
    throw UsageError(
        "--dead-letters is not for RocketMQ: the broker has a dead-letter queue for each group, %DLQ%GROUP");
  }
  return open_rocketmq(rocketmq_options_from_url(url));
}
#else
constexpr Open rocketmq = nullptr;
#endif

constexpr std::array kinds{Kind{"kafka", "TXINBOX_WITH_KAFKA", kafka}, Kind{"amqp", "TXINBOX_WITH_RABBITMQ", rabbitmq},
                           Kind{"amqps", "TXINBOX_WITH_RABBITMQ", rabbitmq},
                           Kind{"rocketmq", "TXINBOX_WITH_ROCKETMQ", rocketmq},
                           Kind{"rocketmqs", "TXINBOX_WITH_ROCKETMQ", rocketmq}};

const Kind* find_kind(std::string_view url) {
  const auto* found = std::ranges::find(kinds, url.substr(0, url.find(':')), &Kind::scheme);
  return found == kinds.end() ? nullptr : found;
}

const Kind& kind_of(std::string_view url) {
  const Kind* kind = find_kind(url);
  if (kind == nullptr) {
    throw UsageError("the URL of the broker must begin with kafka://, amqp://, amqps://, rocketmq:// or rocketmqs://");
  }
  if (kind->open == nullptr) {
    throw UsageError(
        fmt::format("this txinbox was built without {}: build it with -D{}=ON", kind->scheme, kind->option));
  }
  return *kind;
}

}  // namespace

std::string source_url(const std::string& option) {
  if (!option.empty()) {
    if (holds_password(option)) {
      throw UsageError(
          "--from contains a password, which every user of this machine can read; put it into the environment variable "
          "TXINBOX_KAFKA_PASSWORD, TXINBOX_RABBITMQ_PASSWORD or TXINBOX_ROCKETMQ_SECRET");
    }
    kind_of(option);
    return option;
  }
  const char* variable = std::getenv("TXINBOX_FROM");
  if (variable == nullptr || *variable == '\0') return {};
  kind_of(variable);
  return variable;
}

std::uint16_t prefetch_for(std::size_t held) noexcept {
  constexpr std::size_t waiting = 600;
  constexpr std::size_t most = std::numeric_limits<std::uint16_t>::max();
  return static_cast<std::uint16_t>(std::min(held + waiting, most));
}

std::unique_ptr<Source> open_source(const std::string& url, const std::string& dead_letters, std::size_t held) {
  return kind_of(url).open(url, dead_letters, held);
}

bool is_source_url_with_password(std::string_view argument) {
  if (argument.starts_with("-")) argument.remove_prefix(std::min(argument.find('='), argument.size() - 1) + 1);
  return find_kind(argument) != nullptr && argument.find(':') != std::string_view::npos && holds_password(argument);
}

}  // namespace txinbox::cli
