#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <txinbox/kafka.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

#include "client.hpp"
#include "dead_letter_producer.hpp"
#include "kept_messages.hpp"
#include "partitions.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {

/// All members except `wake` run on one thread. The callbacks run on the same thread, because librdkafka calls them
/// inside `rd_kafka_consumer_poll`.
class KafkaSource final : public Source {
 public:
  explicit KafkaSource(const KafkaOptions& options);
  ~KafkaSource() override;

  std::vector<Incoming> poll(std::size_t max, std::chrono::milliseconds wait) override;
  void acknowledge(std::span<const Incoming* const> messages) override;
  bool has_dead_letters() const override { return !options_.dead_letters.empty(); }
  void dead_letter(std::span<DeadLetter> letters) override;
  bool holds(const Incoming& message) const override;
  void pause(std::uint64_t lane) override;
  void resume(std::uint64_t lane) override;
  bool can_rewind() const override { return true; }
  void rewind(const Incoming& first) override;
  void wake() noexcept override;
  SourceStatus status() override;
  void close() noexcept override;

 private:
  using Clock = std::chrono::steady_clock;

  void open_client();
  void forget_client();
  void reopen_after_fatal_error();
  bool subscribe(std::chrono::milliseconds wait);
  bool topic_exists(const std::string& topic, std::chrono::milliseconds wait);
  void keep_membership(std::chrono::milliseconds wait);
  void take(std::size_t max, std::chrono::milliseconds wait);
  std::optional<Incoming> poll_client(std::chrono::milliseconds wait);
  void begin_again(std::uint64_t lane, std::int64_t offset);
  void forget_messages(std::uint64_t lane);
  void consumer_error(const rd_kafka_message_t& message);
  PartitionList begin_new_topics(rd_kafka_topic_partition_list_t& list);
  void check_broker();
  void replace_greater_offsets(const std::map<std::uint64_t, std::int64_t>& offsets);
  void contact();
  std::chrono::milliseconds unless_woken(std::chrono::milliseconds wait);
  void sleep(std::chrono::milliseconds wait);

  static void on_rebalance(rd_kafka_t*, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t*, void* self);
  static void on_error(rd_kafka_t*, int code, const char* reason, void* self);
  void rebalance(rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t& list);
  void client_error(rd_kafka_resp_err_t code);

  const KafkaOptions options_;
  const std::string name_;
  Client client_;
  Queue queue_;  ///< The consumer's queue. `wake` uses it to end a poll.
  std::optional<DeadLetterProducer> dead_letters_;
  Partitions partitions_;
  std::vector<Incoming> taken_;  ///< Messages that the running `poll` returns. A rewind inside `report` removes some.
  KeptMessages kept_;
  bool is_subscribed_ = false;
  bool was_assigned_ = false;             ///< The client has had an assignment, which may have been empty.
  bool is_assigned_ = false;              ///< It has one now. In a rebalance, it has none.
  bool has_missed_topic_ = false;         ///< A topic was deleted under the client.
  std::set<std::string> missing_topics_;  ///< Not there when the client looked, and not assigned since then.
  bool is_closed_ = false;
  bool is_connected_ = false;
  bool was_connected_ = false;
  bool has_warned_ = false;
  std::uint64_t reconnects_ = 0;
  Clock::time_point last_poll_ = Clock::now();
  Clock::time_point last_check_ = Clock::now();
  Clock::time_point next_question_{};                         ///< For the group's offsets.
  rd_kafka_resp_err_t refused_ = RD_KAFKA_RESP_ERR_NO_ERROR;  ///< The refusal that the error callback has recorded.

  std::mutex mutex_;
  std::condition_variable woken_up_;
  bool is_woken_ = false;
};

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
