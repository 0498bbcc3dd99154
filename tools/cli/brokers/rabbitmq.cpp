#include <algorithm>

#include <txinbox/rabbitmq.hpp>

#include "cli/brokers/broker_calls.hpp"
#include "cli/brokers/prefetch.hpp"

namespace txinbox::cli {
namespace {

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

constexpr BrokerCalls rabbitmq_calls{
    .open_source = open_rabbitmq_source,
    .open_publisher = open_with_timeout<rabbitmq_publisher_options_from_url, rabbitmq_publisher>,
    .open_republisher = open_rabbitmq_republisher};

}  // namespace
}  // namespace txinbox::cli

TXINBOX_BROKER_CALLS(rabbitmq) { return &txinbox::cli::rabbitmq_calls; }
