#pragma once

#include <span>
#include <string>

#include <txinbox/kafka.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

#include "client.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {

/// Publishes dead letters, and waits until the broker has them. The producer is idempotent and waits for all replicas.
class DeadLetterProducer {
 public:
  /// Errors: `Error` invalid_argument for the properties.
  explicit DeadLetterProducer(const KafkaOptions& options);

  /// Sets `confirmed` of the letters that the broker has.
  ///
  /// Errors: `Error` broker_refused or access_refused.
  ///
  /// @blocking at most `dead_letter_timeout` and a second.
  void publish(std::span<DeadLetter> letters);

 private:
  const KafkaOptions options_;
  Client producer_;
};

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
