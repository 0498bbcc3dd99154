#include "refusal.hpp"

#include <algorithm>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {
namespace {

namespace protocol = apache::rocketmq::v2;

Error access_refused() {
  return {ErrorCode::access_refused,
          "RocketMQ refuses the access key or its secret, or the user lacks the right; correct access_key, secret "
          "(TXINBOX_ROCKETMQ_SECRET for options from a URL) or the user's rights"};
}

}  // namespace

std::optional<Error> refusal_of(protocol::Code code, const Subject& subject) {
  const auto refused = [](std::string text) {
    return Error(ErrorCode::broker_refused, "RocketMQ: " + std::move(text));
  };
  switch (code) {
    case protocol::TOPIC_NOT_FOUND:
    case protocol::NOT_FOUND:
      return refused("the topic '" + subject.topic + "' does not exist; create it with mqadmin updateTopic");
    case protocol::CONSUMER_GROUP_NOT_FOUND:
      return refused("the group '" + subject.group + "' does not exist; create it with mqadmin updateSubGroup");
    case protocol::ILLEGAL_TOPIC:
      return refused("'" + subject.topic + "' is not a valid topic name");
    case protocol::ILLEGAL_CONSUMER_GROUP:
      return refused("'" + subject.group + "' is not a valid group name");
    case protocol::ILLEGAL_FILTER_EXPRESSION:
      return refused("the tags are not valid; write them as a || b");
    case protocol::ILLEGAL_INVISIBLE_TIME:
      return refused("the broker does not allow this invisible time");
    case protocol::UNAUTHORIZED:
    case protocol::FORBIDDEN:
      return access_refused();
    default:
      return std::nullopt;
  }
}

std::optional<Error> refusal_of(const grpc::Status& status) {
  if (status.error_code() != grpc::StatusCode::UNAUTHENTICATED &&
      status.error_code() != grpc::StatusCode::PERMISSION_DENIED) {
    return std::nullopt;
  }
  return access_refused();
}

std::string text_of(protocol::Code code) { return "the broker answered with code " + std::to_string(code); }

std::string text_of(const grpc::Status& status) {
  std::string text = "gRPC status " + std::to_string(status.error_code()) + ": " + status.error_message();
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

}  // namespace rocketmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
