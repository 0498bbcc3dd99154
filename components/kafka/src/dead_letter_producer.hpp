#pragma once

#include <span>
#include <string>

#include <txinbox/kafka.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

#include "confirmed_producer.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {

/// Publishes dead letters, and waits until the broker has them.
class DeadLetterProducer {
 public:
  /// Errors: `Error` invalid_argument for the properties.
  explicit DeadLetterProducer(const KafkaOptions& options) : topic_(options.dead_letters), producer_(options) {}

  /// Sets `confirmed` of the dead letters that the broker has. Returns the error of the first one that it does not
  /// have.
  ///
  /// Errors: `Error` broker_refused or access_refused.
  ///
  /// @blocking at most `dead_letter_timeout` and a second.
  rd_kafka_resp_err_t publish(std::span<DeadLetter* const> letters);

 private:
  const std::string topic_;
  ConfirmedProducer producer_;
};

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
