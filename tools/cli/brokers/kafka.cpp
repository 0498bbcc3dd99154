#include <txinbox/kafka.hpp>

#include "cli/brokers/broker_calls.hpp"

namespace txinbox::cli {
namespace {

std::unique_ptr<Source> open_kafka_source(const std::string& url, const std::string& dead_letters, std::size_t) {
  KafkaOptions options = kafka_options_from_url(url);
  if (!dead_letters.empty()) options.dead_letters = dead_letters;
  return open_kafka(options);
}

Republisher open_kafka_republisher(const std::string& url) {
  const KafkaOptions options = kafka_options_from_url(url);
  return kafka_republisher({.brokers = options.brokers, .properties = options.properties});
}

constexpr BrokerCalls kafka_calls{
    .open_source = open_kafka_source,
    .open_publisher = open_with_timeout<kafka_publisher_options_from_url, kafka_publisher>,
    .open_republisher = open_kafka_republisher};

}  // namespace
}  // namespace txinbox::cli

TXINBOX_BROKER_CALLS(kafka) { return &txinbox::cli::kafka_calls; }
