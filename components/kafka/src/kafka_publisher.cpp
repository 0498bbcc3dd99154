#include <txinbox/kafka_publisher.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <txinbox/error.hpp>

#include "client.hpp"
#include "kafka_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {
namespace {

using namespace std::chrono_literals;

KafkaOptions consumer_options(const KafkaPublisherOptions& options) {
  KafkaOptions same{.brokers = options.brokers, .group = "-", .topics = {"-"}, .properties = options.properties};
  same.dead_letter_timeout = options.timeout;
  return same;
}

/// The bytes as librdkafka takes them. It copies them, and does not change them.
decltype(rd_kafka_vu_t::u.mem) memory_of(const std::string& bytes) {
  return {.ptr = const_cast<char*>(bytes.data()),
          .size = bytes.size()};  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

rd_kafka_headers_t* headers_of(const OutgoingMessage& message) {
  rd_kafka_headers_t* headers = rd_kafka_headers_new(message.headers.size() + 2);
  const auto add = [&](const std::string& name, const std::string& value) {
    rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value.data(),
                        static_cast<ssize_t>(value.size()));
  };
  add("id", message.id);
  if (!message.type.empty()) add("type", message.type);
  for (const auto& [name, value] : message.headers) add(name, value);
  return headers;
}

bool is_away(rd_kafka_resp_err_t code) {
  switch (code) {
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__QUEUE_FULL:
      return true;
    default:
      return false;
  }
}

PublishResult result_of(rd_kafka_resp_err_t code) {
  switch (code) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return {};
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
      return {PublishStatus::rejected, describe(code)};
    default:
      return {PublishStatus::failed, describe(code)};
  }
}

class Producer {
 public:
  explicit Producer(const KafkaPublisherOptions& options) : options_(consumer_options(options)) {
    check(options_);
    open();
  }
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  std::vector<PublishResult> publish(std::span<const OutgoingMessage> messages) {
    // After a fatal error the producer takes nothing any more. It can come after the reports.
    if (rd_kafka_fatal_error(producer_.get(), nullptr, 0) != RD_KAFKA_RESP_ERR_NO_ERROR) open();
    first_id_ += codes_.size();
    codes_.assign(messages.size(), RD_KAFKA_RESP_ERR__TIMED_OUT);
    waiting_ = 0;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      codes_[i] = produce(messages[i], first_id_ + i);
      if (codes_[i] != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
      codes_[i] = RD_KAFKA_RESP_ERR__TIMED_OUT;
      ++waiting_;
    }
    const auto give_up = std::chrono::steady_clock::now() + options_.dead_letter_timeout + 1s;
    while (waiting_ > 0 && std::chrono::steady_clock::now() < give_up) rd_kafka_poll(producer_.get(), 50);

    if (std::ranges::all_of(codes_, is_away)) {
      throw std::runtime_error("Kafka: the broker confirms nothing: " + describe(codes_.front()));
    }
    std::vector<PublishResult> results;
    for (const auto code : codes_) results.push_back(result_of(code));
    return results;
  }

 private:
  void open() {
    Conf conf = make_conf(options_);
    set(conf.get(), "enable.idempotence", "true");
    set(conf.get(), "acks", "all");
    set(conf.get(), "linger.ms", "1");
    set(conf.get(), "message.timeout.ms", std::to_string(options_.dead_letter_timeout.count()));
    rd_kafka_conf_set_opaque(conf.get(), this);
    rd_kafka_conf_set_dr_msg_cb(conf.get(), on_report);
    producer_ = make_client(RD_KAFKA_PRODUCER, std::move(conf));
  }

  /// librdkafka calls it inside `rd_kafka_poll`, once for each message that it took.
  static void on_report(rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
    auto& producer = *static_cast<Producer*>(self);
    const auto id = reinterpret_cast<std::uintptr_t>(message->_private);  // NOLINT: it was no pointer
    const std::uintptr_t index = id - producer.first_id_;
    if (index >= producer.codes_.size()) return;  // of a call that has given up waiting
    producer.codes_[index] = message->err;
    --producer.waiting_;
  }

  rd_kafka_resp_err_t produce(const OutgoingMessage& message, std::uintptr_t id) {
    rd_kafka_headers_t* headers = headers_of(message);
    std::array<rd_kafka_vu_t, 6> values{};
    values[0].vtype = RD_KAFKA_VTYPE_TOPIC;
    values[0].u.cstr = message.topic.c_str();
    values[1].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
    values[1].u.i = RD_KAFKA_MSG_F_COPY;
    values[2].vtype = RD_KAFKA_VTYPE_VALUE;
    values[2].u.mem = memory_of(message.payload);
    values[3].vtype = RD_KAFKA_VTYPE_KEY;
    if (!message.key.empty()) values[3].u.mem = memory_of(message.key);
    values[4].vtype = RD_KAFKA_VTYPE_HEADERS;
    values[4].u.headers = headers;
    values[5].vtype = RD_KAFKA_VTYPE_OPAQUE;
    values[5].u.ptr = reinterpret_cast<void*>(id);  // NOLINT: librdkafka only gives it back
    rd_kafka_error_t* error = rd_kafka_produceva(producer_.get(), values.data(), values.size());
    if (error == nullptr) return RD_KAFKA_RESP_ERR_NO_ERROR;
    const auto code = rd_kafka_error_code(error);
    rd_kafka_error_destroy(error);
    rd_kafka_headers_destroy(headers);
    return code;
  }

  const KafkaOptions options_;
  std::uintptr_t first_id_ = 1;  ///< Of the messages of this call. No id is used again.
  std::size_t waiting_ = 0;      ///< For a report.
  std::vector<rd_kafka_resp_err_t> codes_;
  Client producer_;
};

}  // namespace
}  // namespace kafka

KafkaPublisherOptions kafka_publisher_options_from_url(std::string_view url) {
  const auto question = std::min(url.find('?'), url.size());
  const std::string_view place = url.substr(0, question);
  if (place.find('/', std::min(place.find("://"), place.size() - 1) + 3) != std::string_view::npos) {
    throw Error(ErrorCode::invalid_argument,
                "the Kafka URL of a publisher names no topic: each message has its own; it is kafka://HOST:PORT");
  }
  // The rest is as in the URL of a source.
  std::string complete(place);
  complete += "/-?group=-";
  if (question < url.size()) complete += "&" + std::string(url.substr(question + 1));
  KafkaOptions read = kafka_options_from_url(complete);
  return {.brokers = std::move(read.brokers), .properties = std::move(read.properties)};
}

Publisher kafka_publisher(const KafkaPublisherOptions& options) {
  auto producer = std::make_shared<kafka::Producer>(options);
  return [producer](std::span<const OutgoingMessage> messages) { return producer->publish(messages); };
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
