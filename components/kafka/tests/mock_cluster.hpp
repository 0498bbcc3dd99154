#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

// clang-format off: rdkafka_mock.h needs rdkafka.h before it
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
// clang-format on

namespace txinbox::test {

/// librdkafka's mock cluster. It fails when a test requests it.
class MockCluster {
 public:
  MockCluster() {
    std::array<char, 256> text{};
    client_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), text.data(), text.size()));
    cluster_ = rd_kafka_mock_cluster_new(client_.get(), 1);
  }
  ~MockCluster() { rd_kafka_mock_cluster_destroy(cluster_); }
  MockCluster(const MockCluster&) = delete;
  MockCluster& operator=(const MockCluster&) = delete;

  std::string brokers() const { return rd_kafka_mock_cluster_bootstraps(cluster_); }
  void create(const std::string& topic) { rd_kafka_mock_topic_create(cluster_, topic.c_str(), 2, 1); }

  template <class... Codes>
  void fail(std::int16_t request, Codes... codes) {
    rd_kafka_mock_push_request_errors(cluster_, request, sizeof...(codes), codes...);
  }

 private:
  struct Destroy {
    void operator()(rd_kafka_t* client) const { rd_kafka_destroy(client); }
  };
  std::unique_ptr<rd_kafka_t, Destroy> client_;
  rd_kafka_mock_cluster_t* cluster_;
};

}  // namespace txinbox::test
