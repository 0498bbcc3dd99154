#include <txinbox/rocketmq.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/error.hpp>

#include "client.hpp"
#include "received_message.hpp"
#include "refusal.hpp"
#include "shared/reserved_headers.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {
namespace {

using namespace std::chrono_literals;

/// The properties that the publisher writes, and the names under which a source lists what the broker keeps apart.
constexpr std::array<std::string_view, 5> own_properties{"id", "type", "key", "keys", "message-group"};

/// The broker writes this property for a message with a group, and refuses it from a client.
constexpr std::string_view sharding_key = "__SHARDINGKEY";

protocol::SendMessageRequest request_of(const OutgoingMessage& outgoing, bool fifo) {
  protocol::SendMessageRequest request;
  protocol::Message& message = *request.add_messages();
  message.mutable_topic()->set_name(outgoing.topic);
  message.set_body(outgoing.payload);
  auto& properties = *message.mutable_user_properties();
  for (const auto& [name, value] : outgoing.headers) {
    properties[component::published_name(outgoing, name, own_properties)] = value;
  }
  properties["id"] = outgoing.id;
  if (!outgoing.type.empty()) properties["type"] = outgoing.type;
  if (!outgoing.key.empty()) properties["key"] = outgoing.key;
  protocol::SystemProperties& system = *message.mutable_system_properties();
  system.set_message_id(outgoing.id);
  system.set_body_encoding(protocol::IDENTITY);
  system.set_message_type(fifo ? protocol::FIFO : protocol::NORMAL);
  // For the broker, a space separates two keys. So a key with a space cannot be sent as one key.
  const bool is_one_key = !outgoing.key.empty() && outgoing.key.find(' ') == std::string::npos;
  if (is_one_key) system.add_keys(outgoing.key);
  if (fifo && !outgoing.key.empty()) system.set_message_group(outgoing.key);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now);
  system.mutable_born_timestamp()->set_seconds(seconds.count());
  system.mutable_born_timestamp()->set_nanos(
      static_cast<int>(std::chrono::duration_cast<std::chrono::nanoseconds>(now - seconds).count()));
  return request;
}

/// A message with a group goes to a FIFO topic, because it came from one.
protocol::SendMessageRequest request_of(const Republication& again, bool /*fifo*/) {
  const protocol::Message& received = message_of(*again.incoming);
  protocol::SendMessageRequest request;
  protocol::Message& message = *request.add_messages();
  message.mutable_topic()->set_name(again.destination);
  auto& properties = *message.mutable_user_properties();
  for (const auto& [name, value] : received.user_properties()) {
    if (!is_replaced_by_redrive(name) && name != sharding_key) properties[name] = value;
  }
  for (const auto& [name, value] : again.headers) properties[std::string(name)] = value;
  const protocol::SystemProperties& from = received.system_properties();
  protocol::SystemProperties& system = *message.mutable_system_properties();
  system.set_message_id(from.message_id());
  *system.mutable_keys() = from.keys();
  if (from.has_tag()) system.set_tag(from.tag());
  if (from.has_message_group()) system.set_message_group(from.message_group());
  system.set_message_type(from.has_message_group() ? protocol::FIFO : protocol::NORMAL);
  if (from.has_born_timestamp()) *system.mutable_born_timestamp() = from.born_timestamp();
  const bool is_compressed = from.body_encoding() == protocol::GZIP;
  system.set_body_encoding(is_compressed ? protocol::GZIP : protocol::IDENTITY);
  message.set_body(is_compressed ? received.body() : std::string(again.incoming->body));
  return request;
}

const std::string& topic_of(const OutgoingMessage& message) { return message.topic; }
const std::string& topic_of(const Republication& message) { return message.destination; }

/// Whether the code (400xx or 413xx) says that the message is invalid for ever. This excludes a missing topic, which
/// can still be created.
bool is_about_message(protocol::Code code) {
  if (code == protocol::ILLEGAL_TOPIC || code == protocol::MESSAGE_PROPERTY_CONFLICT_WITH_TYPE) return false;
  return (code > 40'000 && code < 40'100) || (code >= 41'300 && code < 41'400) || (code >= 43'100 && code < 43'200);
}

std::string error_of(protocol::Code code, const std::string& topic) {
  // The broker sends the same code for a missing topic and for a topic of another type.
  if (code == protocol::MESSAGE_PROPERTY_CONFLICT_WITH_TYPE) {
    return "RocketMQ: the topic '" + topic +
           "' does not exist, or is of another type; FIFO topics need the option fifo, others must not have it";
  }
  const auto refusal = refusal_of(code, {.topic = topic});
  return refusal ? refusal->what() : text_of(code);
}

PublishResult result_of(const grpc::Status& status, const protocol::SendMessageResponse& answer,
                        const std::string& topic) {
  if (!status.ok()) {
    // gRPC itself refuses a text that is not UTF-8, and a message that is too large.
    const bool is_final = status.error_code() == grpc::StatusCode::INVALID_ARGUMENT;
    return {.status = is_final ? PublishStatus::rejected : PublishStatus::failed, .error = text_of(status)};
  }
  const protocol::Code code = answer.entries().empty() ? answer.status().code() : answer.entries(0).status().code();
  if (code == protocol::OK) return {};
  return {.status = is_about_message(code) ? PublishStatus::rejected : PublishStatus::failed,
          .error = error_of(code, topic)};
}

bool is_answer(const grpc::Status& status) {
  return status.error_code() != grpc::StatusCode::UNAVAILABLE &&
         status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED;
}

class RocketMqPublisher {
 public:
  explicit RocketMqPublisher(const RocketMqPublisherOptions& options)
      : fifo_(options.fifo), timeout_(options.timeout), server_(checked(options.server)) {}

  template <class Message>
  std::vector<PublishResult> publish(std::span<const Message> messages) {
    if (!calls_) {
      calls_ = std::make_unique<Calls>();
      client_ = std::make_unique<Client>(server_, Client::target_of(server_));
    }
    std::vector<PublishResult> results(messages.size());
    std::vector<bool> unanswered(messages.size());
    std::size_t ended = 0;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      client_->send(*calls_, &protocol::MessagingService::Stub::PrepareAsyncSendMessage, request_of(messages[i], fifo_),
                    timeout_, [&, i](const grpc::Status& status, const protocol::SendMessageResponse& answer) {
                      results[i] = result_of(status, answer, topic_of(messages[i]));
                      unanswered[i] = !is_answer(status);
                      ++ended;
                    });
    }
    // This loop ends, because each request ends at its deadline at the latest.
    while (ended < messages.size()) calls_->wait(Clock::now() + 1s);
    const auto first = static_cast<std::size_t>(std::ranges::find(unanswered, true) - unanswered.begin());
    if (first == messages.size() || reaches_proxy(topic_of(messages[first]))) return results;
    if (std::ranges::find(unanswered, false) == unanswered.end()) {
      throw std::runtime_error("RocketMQ: " + results.front().error);
    }
    for (std::size_t i = first; i < results.size(); ++i) {
      if (unanswered[i]) results[i] = {.status = PublishStatus::postponed};
    }
    return results;
  }

 private:
  /// Whether the proxy answers another request. Then it does not confirm the messages because of the messages
  /// themselves or because of their brokers.
  bool reaches_proxy(const std::string& topic) {
    constexpr auto patience = 1s;
    protocol::QueryRouteRequest request;
    request.mutable_topic()->set_name(topic);
    *request.mutable_endpoints() = endpoints_of(server_);
    bool is_over = false;
    bool is_reached = false;
    client_->send(*calls_, &protocol::MessagingService::Stub::PrepareAsyncQueryRoute, request, patience,
                  [&](const grpc::Status& status, const protocol::QueryRouteResponse&) {
                    is_reached = is_answer(status);
                    is_over = true;
                  });
    while (!is_over) calls_->wait(Clock::now() + patience);
    return is_reached;
  }

  const bool fifo_;
  const std::chrono::milliseconds timeout_;
  const RocketMqServer server_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Calls> calls_;
};

}  // namespace
}  // namespace rocketmq

namespace {

std::shared_ptr<rocketmq::RocketMqPublisher> make_publisher(const RocketMqPublisherOptions& options) {
  if (options.timeout.count() <= 0 || options.timeout > std::chrono::days(1)) {
    throw Error(ErrorCode::invalid_argument, "RocketMQ: timeout must be positive and at most a day");
  }
  return std::make_shared<rocketmq::RocketMqPublisher>(options);
}

}  // namespace

Publisher rocketmq_publisher(const RocketMqPublisherOptions& options) {
  return [publisher = make_publisher(options)](std::span<const OutgoingMessage> messages) {
    return publisher->publish(messages);
  };
}

Republisher rocketmq_republisher(const RocketMqPublisherOptions& options) {
  return [publisher = make_publisher(options)](std::span<const Republication> messages) {
    return publisher->publish(messages);
  };
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
