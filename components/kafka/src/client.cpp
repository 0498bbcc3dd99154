#include "client.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <txinbox/error.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {
namespace {

struct Reserved {
  std::string_view property;
  const char* instead;
};

constexpr std::array reserved{
    Reserved{"bootstrap.servers", "KafkaOptions::brokers"},
    Reserved{"metadata.broker.list", "KafkaOptions::brokers"},
    Reserved{"group.id", "KafkaOptions::group"},
    Reserved{"group.instance.id", "KafkaOptions::instance_id"},
    Reserved{"max.poll.interval.ms", "KafkaOptions::max_poll_interval"},
    Reserved{"session.timeout.ms", "KafkaOptions::session_timeout"},
    Reserved{"message.timeout.ms", "KafkaOptions::dead_letter_timeout"},
    Reserved{"enable.auto.commit", nullptr},
    Reserved{"enable.auto.offset.store", nullptr},
    Reserved{"auto.commit.enable", nullptr},
    Reserved{"enable.partition.eof", nullptr},
    Reserved{"enable.idempotence", nullptr},
    Reserved{"acks", nullptr},
    Reserved{"request.required.acks", nullptr},
    Reserved{"allow.auto.create.topics", nullptr},
};

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorCode::invalid_argument, text); }

}  // namespace

void check(const KafkaOptions& options) {
  using namespace std::chrono_literals;
  if (options.brokers.empty()) refuse("KafkaOptions::brokers is empty: name at least one broker, host:9092");
  if (options.group.empty()) refuse("KafkaOptions::group is empty: name the consumer group");
  if (options.topics.empty()) refuse("KafkaOptions::topics is empty: name at least one topic");
  if (std::ranges::any_of(options.topics, &std::string::empty)) refuse("KafkaOptions::topics has an empty name");
  if (options.dead_letter_timeout < 1ms) refuse("KafkaOptions::dead_letter_timeout must be positive");
  if (options.session_timeout < 1ms || options.max_poll_interval < options.session_timeout) {
    refuse("KafkaOptions::session_timeout must be positive, and at most max_poll_interval");
  }
  for (const auto& [property, value] : options.properties) {
    const auto* found = std::ranges::find(reserved, property, &Reserved::property);
    if (found == reserved.end()) continue;
    if (found->instead != nullptr) refuse("set " + std::string(found->instead) + ", not the property " + property);
    refuse("the property " + property + " cannot be set: the guarantee rests on the source's own value");
  }
}

void set(rd_kafka_conf_t* conf, const std::string& name, const std::string& value) {
  // librdkafka's text of the error holds the value, which can be a password.
  std::array<char, 512> text{};
  switch (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), text.data(), text.size())) {
    case RD_KAFKA_CONF_OK:
      return;
    case RD_KAFKA_CONF_UNKNOWN:
      refuse("librdkafka has no property " + name + ", or was built without it");
    case RD_KAFKA_CONF_INVALID:
    default:
      refuse("the value of the property " + name + " is not valid");
  }
}

Conf make_conf(const KafkaOptions& options) {
  Conf conf(rd_kafka_conf_new());
  set(conf.get(), "bootstrap.servers", options.brokers);
  set(conf.get(), "client.id", "txinbox");
  // Its messages come as errors to the source.
  rd_kafka_conf_set_log_cb(conf.get(), [](const rd_kafka_t*, int, const char*, const char*) {});
  for (const auto& [property, value] : options.properties) set(conf.get(), property, value);
  return conf;
}

Client make_client(rd_kafka_type_t type, Conf conf) {
  std::array<char, 512> text{};
  Client client(rd_kafka_new(type, conf.get(), text.data(), text.size()));
  if (!client) {
    const auto code = rd_kafka_last_error();
    refuse("librdkafka refuses the properties together: " + std::string(rd_kafka_err2name(code)) +
           "; look at those for TLS and SASL, and at the time-outs");
  }
  static_cast<void>(conf.release());  // the client owns it now
  return client;
}

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
