#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <librdkafka/rdkafka.h>
#include <txinbox/version.hpp>

#include "client.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {

struct DestroyHeaders {
  void operator()(rd_kafka_headers_t* headers) const noexcept { rd_kafka_headers_destroy(headers); }
};
using Headers = std::unique_ptr<rd_kafka_headers_t, DestroyHeaders>;

/// Adds a header. Copies its name and value.
void add_header(const Headers& headers, std::string_view name, std::string_view value);

/// A record to publish. The texts that it refers to must live until the call returns.
struct OutgoingRecord {
  const std::string& topic;
  std::optional<std::string_view> key;   ///< None for a record without a key.
  std::optional<std::string_view> body;  ///< None for a tombstone.
  Headers headers;
};

/// The treatment of a record for a topic that does not exist.
enum class MissingTopic {
  may_be_created,  ///< The broker decides (`auto.create.topics.enable`).
  is_refused,      ///< The record is not published.
};

/// Publishes records, and waits until the broker has them. The producer is idempotent and waits for all replicas. It
/// connects at the first record.
class ConfirmedProducer {
 public:
  using Clock = std::chrono::steady_clock;

  /// It uses `brokers`, `properties` and `dead_letter_timeout` of the options. The time-out applies to each record.
  ///
  /// Errors: `Error` invalid_argument for the properties.
  explicit ConfirmedProducer(const KafkaOptions& options, MissingTopic missing = MissingTopic::may_be_created);
  ConfirmedProducer(const ConfirmedProducer&) = delete;
  ConfirmedProducer& operator=(const ConfirmedProducer&) = delete;

  /// Returns the broker's answer for each record, in their order. It is RD_KAFKA_RESP_ERR_NO_ERROR if the broker has
  /// the record. The broker's limit applies to the batch in which the client sends records. So a record of a batch that
  /// was too large is published once more, alone.
  ///
  /// @blocking until `give_up` at most.
  std::vector<rd_kafka_resp_err_t> publish(std::span<const OutgoingRecord> records, Clock::time_point give_up);

  /// A time after which a call of now need not wait: the time-out and a second.
  Clock::time_point latest() const { return Clock::now() + options_.dead_letter_timeout + std::chrono::seconds(1); }

  /// The client's own codes, which are negative, do not tell the cause of a fatal error of the producer, for example a
  /// missing right to write. For such a code of the last call, it returns the code of the fatal error. Otherwise it
  /// returns `code`.
  rd_kafka_resp_err_t cause_of(rd_kafka_resp_err_t code) const;

  /// Whether a broker answers.
  ///
  /// @blocking at most a second.
  bool reaches_broker();

 private:
  void open();
  bool has_fatal_error() const;
  rd_kafka_resp_err_t produce(const OutgoingRecord& record, std::uintptr_t id);
  std::vector<rd_kafka_resp_err_t> publish_once(std::span<const OutgoingRecord> records, Clock::time_point give_up);
  static void on_report(rd_kafka_t*, const rd_kafka_message_t* message, void* self);

  const KafkaOptions options_;
  const MissingTopic missing_;
  std::uintptr_t first_id_ = 1;  ///< The id of this call's first record. No id is reused, because a report can be late.
  std::size_t waiting_ = 0;      ///< The number of records that wait for a report.
  std::vector<rd_kafka_resp_err_t> codes_;
  Client producer_;
};

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
