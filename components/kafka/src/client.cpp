#include "client.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <regex.h>

#include <txinbox/error.hpp>

#include "shared/ascii.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {
namespace {

using namespace std::chrono_literals;

struct Reserved {
  std::string_view property;
  const char* instead;
};

constexpr std::array reserved{
    Reserved{"bootstrap.servers", "KafkaOptions::brokers"},
    Reserved{"metadata.broker.list", "KafkaOptions::brokers"},
    Reserved{"group.id", "KafkaOptions::group"},
    Reserved{"message.timeout.ms", "KafkaOptions::dead_letter_timeout"},
    Reserved{"delivery.timeout.ms", "KafkaOptions::dead_letter_timeout"},
    Reserved{"enable.auto.commit", nullptr},
    Reserved{"enable.auto.offset.store", nullptr},
    Reserved{"auto.commit.enable", nullptr},
    Reserved{"auto.commit.interval.ms", nullptr},
    Reserved{"enable.partition.eof", nullptr},
    Reserved{"enable.idempotence", nullptr},
    Reserved{"transactional.id", nullptr},
    Reserved{"acks", nullptr},
    Reserved{"request.required.acks", nullptr},
    Reserved{"allow.auto.create.topics", nullptr},
};

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorCode::invalid_argument, text); }

/// Whether a consumer of this topic, which may be a regular expression, gets the records of the other topic. librdkafka
/// uses the same functions.
bool contains(const std::string& topic, const std::string& other) {
  if (!topic.starts_with("^")) return topic == other;
  regex_t pattern;
  if (::regcomp(&pattern, topic.c_str(), REG_EXTENDED | REG_NOSUB) != 0) return false;  // librdkafka refuses it, too
  const bool matches = ::regexec(&pattern, other.c_str(), 0, nullptr, 0) == 0;
  ::regfree(&pattern);
  return matches;
}

/// None if the value has more than 255 bytes.
std::optional<std::string> value_of(const rd_kafka_conf_t* conf, const char* property) {
  std::array<char, 256> value{};
  std::size_t size = value.size();
  if (rd_kafka_conf_get(conf, property, value.data(), &size) != RD_KAFKA_CONF_OK) return std::nullopt;
  return value.data();
}

/// A third of the session time-out, and at most 3 s, the default of librdkafka. With a session time-out that is shorter
/// than the interval, the broker would remove the member.
std::string heartbeat_interval(const rd_kafka_conf_t* conf) {
  return std::to_string(std::clamp(std::stoi(value_of(conf, "session.timeout.ms").value()) / 3, 1, 3000));
}

/// Whether the protocol uses TLS. The values of `security.protocol` are not case-sensitive.
bool is_encrypted(std::string_view protocol) {
  const std::string lower = component::lower_case(protocol);
  return lower == "ssl" || lower == "sasl_ssl";
}

}  // namespace

void check(const KafkaOptions& options) {
  if (options.brokers.empty()) refuse("KafkaOptions::brokers is empty: name at least one broker, host:9092");
  if (options.group.empty()) refuse("KafkaOptions::group is empty: name the consumer group");
  if (options.topics.empty()) refuse("KafkaOptions::topics is empty: name at least one topic");
  if (std::ranges::any_of(options.topics, &std::string::empty)) refuse("KafkaOptions::topics has an empty name");
  const auto own = std::ranges::find_if(
      options.topics, [&](const std::string& topic) { return contains(topic, options.dead_letters); });
  if (!options.dead_letters.empty() && own != options.topics.end()) {
    refuse("KafkaOptions::dead_letters: the source would consume its own dead letters, because the topic " +
           options.dead_letters + " is one of its topics (" + *own + "); name another topic");
  }
  if (options.dead_letter_timeout < 1ms || options.dead_letter_timeout > std::chrono::days(1)) {
    refuse("KafkaOptions::dead_letter_timeout, or KafkaPublisherOptions::timeout, must be positive and at most a day");
  }
  for (const auto& [property, value] : options.properties) {
    const auto* found = std::ranges::find(reserved, property, &Reserved::property);
    if (found == reserved.end()) continue;
    if (found->instead != nullptr) refuse("set " + std::string(found->instead) + ", not the property " + property);
    refuse("the property " + property + " cannot be set: the guarantee depends on the source's value");
  }
}

void set(rd_kafka_conf_t* conf, const std::string& name, const std::string& value) {
  // librdkafka's error text contains the value, which can be a password. So it is not used.
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
  // No log: the source gets errors by its callback.
  rd_kafka_conf_set_log_cb(conf.get(), [](const rd_kafka_t*, int, const char*, const char*) {});
  for (const auto& [property, value] : options.properties) set(conf.get(), property, value);
  // librdkafka 2.0 and later check the host name by default. This does it for older versions.
  const auto protocol = options.properties.find("security.protocol");
  if (protocol != options.properties.end() && is_encrypted(protocol->second) &&
      !options.properties.contains("ssl.endpoint.identification.algorithm")) {
    set(conf.get(), "ssl.endpoint.identification.algorithm", "https");
  }
  return conf;
}

Conf make_consumer_conf(const KafkaOptions& own_options) {
  KafkaOptions options = own_options;
  options.properties.try_emplace("auto.offset.reset", "earliest");
  options.properties.try_emplace("partition.assignment.strategy", "cooperative-sticky");
  // If a topic is missing in the metadata, the client gives its partitions back. So the source notices that a topic was
  // deleted, unless the topic is created again within this time. For a regular expression, the client asks for all
  // topics of the cluster.
  const bool has_pattern = std::ranges::any_of(options.topics, [](const std::string& t) { return t.starts_with("^"); });
  options.properties.try_emplace("topic.metadata.refresh.interval.ms", has_pattern ? "10000" : "1000");
  Conf conf = make_conf(options);
  if (!options.properties.contains("heartbeat.interval.ms")) {
    set(conf.get(), "heartbeat.interval.ms", heartbeat_interval(conf.get()));
  }
  set(conf.get(), "group.id", options.group);
  // The source stores offsets after the database has committed. The client commits the offsets to the broker, because
  // an explicit commit could fail in a rebalance.
  set(conf.get(), "enable.auto.offset.store", "false");
  set(conf.get(), "enable.auto.commit", "true");
  set(conf.get(), "auto.commit.interval.ms", "1000");
  set(conf.get(), "enable.partition.eof", "true");  // for `SourceStatus::at_end`
  return conf;
}

bool destroy_within(std::chrono::milliseconds longest, rd_kafka_t* client) noexcept {
  try {
    std::packaged_task<void()> destroy(
        [client] { rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE); });
    const std::future<void> destroyed = destroy.get_future();
    std::thread(std::move(destroy)).detach();
    return destroyed.wait_for(longest) == std::future_status::ready;
  } catch (...) {  // there is no memory, or no thread: the client stays until the process ends
    return false;
  }
}

void DestroyClient::operator()(rd_kafka_t* client) const noexcept { destroy_within(3s, client); }

Client make_client(rd_kafka_type_t type, Conf conf) {
  std::array<char, 512> text{};
  Client client(rd_kafka_new(type, conf.get(), text.data(), text.size()));
  if (!client) {
    const auto code = rd_kafka_last_error();
    refuse("librdkafka refuses this combination of properties: " + std::string(rd_kafka_err2name(code)) +
           "; check the properties for TLS and SASL, and the time-outs");
  }
  static_cast<void>(conf.release());  // the client owns it now
  return client;
}

rd_kafka_resp_err_t ask_for_topic(rd_kafka_t* client, const std::string& topic, int milliseconds,
                                  rd_kafka_resp_err_t& topic_code) {
  rd_kafka_topic_t* handle = rd_kafka_topic_new(client, topic.c_str(), nullptr);
  if (handle == nullptr) {
    topic_code = RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
  }
  const rd_kafka_metadata_t* metadata = nullptr;
  const auto code = rd_kafka_metadata(client, 0, handle, &metadata, milliseconds);
  rd_kafka_topic_destroy(handle);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return code;
  if (metadata->topic_cnt == 1) topic_code = metadata->topics->err;
  rd_kafka_metadata_destroy(metadata);
  return code;
}

bool aborts_before_assignment(rd_kafka_t* client) {
  constexpr int fixed_version = 0x020300ff;
  if (rd_kafka_version() >= fixed_version) return false;
  const auto strategy = value_of(rd_kafka_conf(client), "partition.assignment.strategy");
  return !strategy || strategy->find("sticky") != std::string::npos;
}

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
