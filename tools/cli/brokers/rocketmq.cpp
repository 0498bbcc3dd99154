#include <txinbox/rocketmq.hpp>

#include "cli/brokers/broker_calls.hpp"
#include "console/usage_error.hpp"

namespace txinbox::cli {
namespace {

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

constexpr BrokerCalls rocketmq_calls{
    .open_source = open_rocketmq_source,
    .open_publisher = open_with_timeout<rocketmq_publisher_options_from_url, rocketmq_publisher>,
    .open_republisher = open_rocketmq_republisher};

}  // namespace
}  // namespace txinbox::cli

TXINBOX_BROKER_CALLS(rocketmq) { return &txinbox::cli::rocketmq_calls; }
