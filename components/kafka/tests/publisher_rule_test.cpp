// The rule of publishers for Kafka, with librdkafka's mock cluster.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>
#include <txinbox/kafka.hpp>

#include "mock_cluster.hpp"
#include "support/publisher_rule.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

struct CloseConsumer {
  void operator()(rd_kafka_t* client) const { rd_kafka_destroy(client); }
};

/// The ids of the records in the two partitions of a topic.
std::set<std::string> ids_in(const std::string& brokers, const std::string& topic) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  std::array<char, 256> text{};
  for (const auto& property : {std::array{"bootstrap.servers", brokers.c_str()}, std::array{"group.id", "reader"},
                               std::array{"enable.partition.eof", "true"}, std::array{"fetch.wait.max.ms", "10"}}) {
    if (rd_kafka_conf_set(conf, property[0], property[1], text.data(), text.size()) != RD_KAFKA_CONF_OK) {
      throw std::runtime_error(text.data());
    }
  }
  const std::unique_ptr<rd_kafka_t, CloseConsumer> consumer(
      rd_kafka_new(RD_KAFKA_CONSUMER, conf, text.data(), text.size()));
  rd_kafka_topic_partition_list_t* partitions = rd_kafka_topic_partition_list_new(2);
  for (const int number : {0, 1}) {
    rd_kafka_topic_partition_list_add(partitions, topic.c_str(), number)->offset = RD_KAFKA_OFFSET_BEGINNING;
  }
  rd_kafka_assign(consumer.get(), partitions);
  rd_kafka_topic_partition_list_destroy(partitions);
  std::set<std::string> ids;
  for (int ends = 0; ends < 2;) {
    rd_kafka_message_t* message = rd_kafka_consumer_poll(consumer.get(), 60'000);
    REQUIRE(message != nullptr);
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) ++ends;
    rd_kafka_headers_t* headers = nullptr;
    const void* id = nullptr;
    std::size_t size = 0;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR &&
        rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR &&
        rd_kafka_header_get_last(headers, "id", &id, &size) == RD_KAFKA_RESP_ERR_NO_ERROR) {
      ids.emplace(static_cast<const char*>(id), size);
    }
    rd_kafka_message_destroy(message);
  }
  return ids;
}

/// Each message has a request of its own, so that the cluster can answer some of them.
template <int TimeoutSeconds>
class Cluster {
 public:
  Cluster() {
    cluster_.create("stock");
    cluster_.refuse("refused");
  }

  /// The publisher knows the topic already, so that its next requests are those of the test.
  Publisher publisher() const {
    const Publisher publish =
        kafka_publisher({.brokers = cluster_.brokers(),
                         .timeout = std::chrono::seconds(TimeoutSeconds),
                         .properties = {{"batch.num.messages", "1"}, {"reconnect.backoff.max.ms", "100"}}});
    const std::vector<OutgoingMessage> first{message(first_id)};
    REQUIRE(publish(first)[0].status == PublishStatus::confirmed);
    return publish;
  }
  static Publisher publisher_to_nowhere() { return kafka_publisher({.brokers = "127.0.0.1:1", .timeout = 200ms}); }
  static OutgoingMessage message(const std::string& id) { return {.topic = "stock", .payload = "{}", .id = id}; }
  static OutgoingMessage refused(const std::string& id) { return {.topic = "refused", .payload = "{}", .id = id}; }

  std::set<std::string> held() const {
    auto ids = ids_in(cluster_.brokers(), "stock");
    ids.erase(first_id);
    return ids;
  }
  void fall_silent_after(std::size_t answers) {
    cluster_.fall_silent_after(produce, answers);
    cluster_.fall_silent_after(api_version, 0);  // so the next connection cannot be used
  }
  /// librdkafka connects again and repeats the request.
  void close_after(std::size_t answers) { cluster_.close_after(produce, answers); }
  void recover() { cluster_.restart(); }

 private:
  // The numbers of the requests in Kafka's protocol.
  static constexpr std::int16_t produce = 0;
  static constexpr std::int16_t api_version = 18;
  static constexpr const char* first_id = "first";

  MockCluster cluster_;
};

using PatientCluster = Cluster<60>;
using HastyCluster = Cluster<3>;

TEST_CASE_TEMPLATE_INVOKE(publisher_confirms, PatientCluster);
TEST_CASE_TEMPLATE_INVOKE(publisher_blames_the_refused, PatientCluster);
TEST_CASE_TEMPLATE_INVOKE(publisher_blames_nobody_alone, PatientCluster);
TEST_SUITE_BEGIN("timed");
TEST_CASE_TEMPLATE_INVOKE(publisher_outlives_close, PatientCluster);
TEST_CASE_TEMPLATE_INVOKE(publisher_outlives_silence, HastyCluster);
TEST_SUITE_END();

}  // namespace
}  // namespace txinbox::test
