#pragma once

#include <span>
#include <string>
#include <vector>

#include <txinbox/kafka.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

#include "confirmed_producer.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {

/// Which headers of a message its dead letter keeps.
enum class CopiedHeaders { all, none };

/// Publishes dead letters, and waits until the broker has them.
class DeadLetterProducer {
 public:
  /// Errors: `Error` invalid_argument for the properties.
  explicit DeadLetterProducer(const KafkaOptions& options) : topic_(options.dead_letters), producer_(options) {}

  /// Sets `confirmed` of the dead letters that the broker has. Returns the error of the first one that it does not
  /// have. A dead letter that is too large for the broker is published without the message's own headers.
  ///
  /// Errors: `Error` broker_refused or access_refused.
  ///
  /// @blocking at most `dead_letter_timeout` and a second.
  rd_kafka_resp_err_t publish(std::span<DeadLetter* const> letters);

 private:
  std::vector<rd_kafka_resp_err_t> publish(std::span<DeadLetter* const> letters, CopiedHeaders copied,
                                           ConfirmedProducer::Clock::time_point give_up);

  const std::string topic_;
  ConfirmedProducer producer_;
};

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
