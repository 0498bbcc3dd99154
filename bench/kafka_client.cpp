#include "kafka_client.hpp"

#include <array>
#include <stdexcept>

#include <fmt/format.h>

namespace txinbox::bench {
namespace {

void require(rd_kafka_resp_err_t code, const char* what) {
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error(fmt::format("{}: {}", what, rd_kafka_err2str(code)));
}

rd_kafka_t* new_client(rd_kafka_type_t type, std::initializer_list<std::pair<const char*, std::string>> properties) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  char text[256];
  for (const auto& [name, value] : properties) {
    if (rd_kafka_conf_set(conf, name, value.c_str(), text, sizeof text) != RD_KAFKA_CONF_OK) {
      throw std::runtime_error(text);
    }
  }
  rd_kafka_t* client = rd_kafka_new(type, conf, text, sizeof text);
  if (client == nullptr) throw std::runtime_error(text);
  return client;
}

}  // namespace

void publish(const std::string& brokers, const std::string& topic, int count) {
  const std::unique_ptr<rd_kafka_t, decltype(&rd_kafka_destroy)> producer(
      new_client(RD_KAFKA_PRODUCER, {{"bootstrap.servers", brokers}, {"linger.ms", "5"}}), rd_kafka_destroy);
  std::int64_t first = 0;
  std::int64_t last = 0;
  if (rd_kafka_query_watermark_offsets(producer.get(), topic.c_str(), 0, &first, &last, 10'000) ==
          RD_KAFKA_RESP_ERR_NO_ERROR &&
      last > 0) {
    return;
  }
  const std::string body(100, 'x');
  for (int i = 0; i < count; ++i) {
    const std::string key = fmt::format("-{:08}", i);
    std::array<rd_kafka_vu_t, 4> values{};
    values[0].vtype = RD_KAFKA_VTYPE_TOPIC;
    values[0].u.cstr = topic.c_str();
    values[1].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
    values[1].u.i = RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK;
    values[2].vtype = RD_KAFKA_VTYPE_VALUE;
    values[2].u.mem = {const_cast<char*>(body.data()), body.size()};
    values[3].vtype = RD_KAFKA_VTYPE_KEY;
    values[3].u.mem = {const_cast<char*>(key.data()), key.size()};
    if (rd_kafka_error_t* error = rd_kafka_produceva(producer.get(), values.data(), values.size())) {
      const std::string text = rd_kafka_error_string(error);
      rd_kafka_error_destroy(error);
      throw std::runtime_error("publishing: " + text);
    }
  }
  require(rd_kafka_flush(producer.get(), 120'000), "publishing");
}

KafkaClient::KafkaClient(const std::string& brokers, const std::string& group, const std::string& topic)
    : client_(new_client(RD_KAFKA_CONSUMER, {{"bootstrap.servers", brokers},
                                             {"group.id", group},
                                             {"auto.offset.reset", "earliest"},
                                             {"enable.auto.commit", "false"}})) {
  rd_kafka_poll_set_consumer(client_);
  rd_kafka_topic_partition_list_t* topics = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(topics, topic.c_str(), RD_KAFKA_PARTITION_UA);
  const auto code = rd_kafka_subscribe(client_, topics);
  rd_kafka_topic_partition_list_destroy(topics);
  require(code, "subscribing");
}

KafkaClient::~KafkaClient() {
  rd_kafka_consumer_close(client_);
  rd_kafka_destroy(client_);
}

std::optional<KafkaClient::Record> KafkaClient::poll() {
  rd_kafka_message_t* message = rd_kafka_consumer_poll(client_, 10'000);
  if (message == nullptr) return std::nullopt;
  Record record(message);
  require(message->err, "polling");
  return record;
}

void KafkaClient::commit(const Record& record, bool waits) {
  require(rd_kafka_commit_message(client_, record.get(), waits ? 0 : 1), "committing the offset");
}

}  // namespace txinbox::bench
