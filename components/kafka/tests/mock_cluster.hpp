#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

// clang-format off: rdkafka_mock.h needs rdkafka.h before it
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
// clang-format on
#include <txinbox/kafka.hpp>

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

  /// The options of a consumer.
  ///
  /// librdkafka joins the group a second time if the answer to a join comes while the client refreshes its metadata.
  /// The mock cluster answers the first join after 3 s, and each later one after the session time-out less 1 s. A real
  /// broker answers the second join at once. So no multiple of the interval is near to these times: with the default
  /// of 1 s, a consumer sometimes joined again and again for 30 s.
  KafkaOptions consumer(const std::string& group, const std::string& topic) const {
    return {.brokers = brokers(),
            .group = group,
            .topics = {topic},
            .properties = {{"session.timeout.ms", "6000"}, {"topic.metadata.refresh.interval.ms", "700"}}};
  }

  void create(const std::string& topic, int partitions = 2) {
    rd_kafka_mock_topic_create(cluster_, topic.c_str(), partitions, 1);
  }

  template <class... Codes>
  void fail(std::int16_t request, Codes... codes) {
    rd_kafka_mock_push_request_errors(cluster_, request, sizeof...(codes), codes...);
  }

  /// The next requests of this kind, however many they are, fail with the code.
  void fail_all(std::int16_t request, rd_kafka_resp_err_t code) {
    const std::vector<rd_kafka_resp_err_t> codes(10'000, code);
    rd_kafka_mock_push_request_errors_array(cluster_, request, codes.size(), codes.data());
  }

  /// Requests that `fail` has not reached do not fail.
  void answer_again(std::int16_t request) { rd_kafka_mock_clear_request_errors(cluster_, request); }

  /// The broker answers the requests that come from now on after an hour.
  void fall_silent() { rd_kafka_mock_broker_set_rtt(cluster_, 1, hour); }

  /// The broker answers this many requests, and closes the connection, twice, at those that follow.
  void close_after(std::int16_t request, std::size_t answers) {
    std::vector<rd_kafka_resp_err_t> codes(answers, RD_KAFKA_RESP_ERR_NO_ERROR);
    codes.insert(codes.end(), 2, RD_KAFKA_RESP_ERR__TRANSPORT);
    rd_kafka_mock_push_request_errors_array(cluster_, request, codes.size(), codes.data());
  }

  /// The broker answers this many requests, and the next one, with all that follow on its connection, after an hour.
  void fall_silent_after(std::int16_t request, std::size_t answers) {
    for (std::size_t i = 0; i <= answers; ++i) {
      rd_kafka_mock_broker_push_request_error_rtts(cluster_, 1, request, 1, RD_KAFKA_RESP_ERR_NO_ERROR,
                                                   i < answers ? 0 : hour);
    }
  }

  /// Closes the connections. Answers that were still to come are lost.
  void restart() {
    rd_kafka_mock_broker_set_down(cluster_, 1);
    rd_kafka_mock_broker_set_up(cluster_, 1);
  }

  void refuse(const std::string& topic) {
    rd_kafka_mock_topic_set_error(cluster_, topic.c_str(), RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION);
  }

 private:
  static constexpr int hour = 3'600'000;  // in milliseconds

  struct Destroy {
    void operator()(rd_kafka_t* client) const { rd_kafka_destroy(client); }
  };
  std::unique_ptr<rd_kafka_t, Destroy> client_;
  rd_kafka_mock_cluster_t* cluster_;
};

}  // namespace txinbox::test
