#pragma once

#include <cstdint>
#include <map>
#include <set>
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
  DeadLetterProducer(const DeadLetterProducer&) = delete;
  DeadLetterProducer& operator=(const DeadLetterProducer&) = delete;

  /// Sets `confirmed` of the letters that the broker has. Returns why the first of the others is not there.
  ///
  /// Errors: `Error` broker_refused or access_refused.
  ///
  /// @blocking at most `dead_letter_timeout` and a second.
  rd_kafka_resp_err_t publish(std::span<DeadLetter> letters);

 private:
  using Id = std::uintptr_t;

  void open();
  rd_kafka_resp_err_t produce(const DeadLetter& letter, Id id);
  static void on_report(rd_kafka_t*, const rd_kafka_message_t* message, void* self);

  const KafkaOptions options_;
  Client producer_;
  Id last_id_ = 0;        ///< A report may come after `publish` has given up waiting: ids are not used again.
  std::set<Id> waiting_;  ///< For a report.
  std::map<Id, rd_kafka_resp_err_t> reports_;
};

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
