// The properties of messages that RocketMQ delivers, and of those that are published. The proxy is in this process.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/rocketmq.hpp>

#include "fake_proxy.hpp"
#include "received_message.hpp"

namespace txinbox::test {
namespace {

using Names = std::vector<std::pair<std::string, std::string>>;

Names names_of(const Incoming& incoming) {
  Names found;
  for (const IncomingHeader& each : incoming.headers) found.emplace_back(each.name, each.value);
  return found;
}

TEST_CASE("RocketMQ: a property of the producer does not shadow what the broker keeps apart") {
  rocketmq::protocol::Message message;
  auto& properties = *message.mutable_user_properties();
  properties["tag"] = "of-producer";
  properties["keys"] = "old-key";
  properties["message-group"] = "old-group";
  properties["a"] = "1";
  message.mutable_system_properties()->set_tag("of-broker");
  message.mutable_system_properties()->add_keys("new-key");
  message.mutable_system_properties()->set_message_group("new-group");
  CHECK(names_of(rocketmq::incoming_of(message, 1, true)) == Names{{"tag", "of-broker"},
                                                                   {"keys", "new-key"},
                                                                   {"message-group", "new-group"},
                                                                   {"a", "1"},
                                                                   {"header:keys", "old-key"},
                                                                   {"header:message-group", "old-group"},
                                                                   {"header:tag", "of-producer"}});
  message.clear_system_properties();
  CHECK(names_of(rocketmq::incoming_of(message, 1, true)) ==
        Names{{"a", "1"}, {"header:keys", "old-key"}, {"message-group", "old-group"}, {"tag", "of-producer"}});
}

TEST_CASE("RocketMQ: a header of a message does not shadow the properties that the publisher writes") {
  FakeProxy proxy;
  proxy.answer_messages(FakeProxy::any_number, FakeProxy::Rest::is_silent);
  const Publisher publish = rocketmq_publisher({.server = {.host = "127.0.0.1", .port = proxy.port()}});
  const std::map<std::string, std::string> headers{
      {"id", "old-id"}, {"type", "old-type"}, {"key", "old-key"}, {"keys", "old-keys"}, {"traceparent", "00-1"}};
  const std::vector<OutgoingMessage> one{{.topic = "stock", .payload = "{}", .headers = headers, .id = "new-id"}};
  REQUIRE(publish(one).front().status == PublishStatus::confirmed);
  std::map<std::string, std::string> expected{{"id", "new-id"},
                                              {"header:id", "old-id"},
                                              {"header:key", "old-key"},
                                              {"header:keys", "old-keys"},
                                              {"header:type", "old-type"},
                                              {"traceparent", "00-1"}};
  CHECK(proxy.properties() == expected);
  const std::vector<OutgoingMessage> keyed{
      {.topic = "stock", .key = "new-key", .type = "new-type", .payload = "{}", .headers = headers, .id = "new-id"}};
  REQUIRE(publish(keyed).front().status == PublishStatus::confirmed);
  expected["key"] = "new-key";
  expected["type"] = "new-type";
  CHECK(proxy.properties() == expected);
}

TEST_CASE("RocketMQ: a dead letter that is published again is the message as it was sent") {
  FakeProxy proxy;
  proxy.answer_messages(FakeProxy::any_number, FakeProxy::Rest::is_silent);
  const Republisher publish = rocketmq_republisher({.server = {.host = "127.0.0.1", .port = proxy.port()}});
  rocketmq::protocol::Message message;
  message.set_body("body");
  auto& properties = *message.mutable_user_properties();
  properties["id"] = "my-id";
  properties["__SHARDINGKEY"] = "k1";
  properties["txinbox-redrives"] = "1";
  properties["txinbox-other"] = "kept";
  auto& system = *message.mutable_system_properties();
  system.set_message_id("my-id");
  system.set_tag("of-order");
  system.add_keys("k1");
  system.add_keys("k2");
  system.set_message_group("k1");
  system.set_body_encoding(rocketmq::protocol::IDENTITY);
  const Incoming incoming = rocketmq::incoming_of(message, 1, true);
  const std::vector<Republication> again{
      {.incoming = &incoming, .destination = "orders", .headers = {{dead_letter_header::redrives, "2"}}}};
  REQUIRE(publish(again).front().status == PublishStatus::confirmed);
  CHECK(proxy.properties() ==
        std::map<std::string, std::string>{{"id", "my-id"}, {"txinbox-other", "kept"}, {"txinbox-redrives", "2"}});
  const rocketmq::protocol::Message sent = proxy.message();
  CHECK(sent.topic().name() == "orders");
  CHECK(sent.body() == "body");
  CHECK(sent.system_properties().message_id() == "my-id");
  CHECK(sent.system_properties().tag() == "of-order");
  CHECK(sent.system_properties().keys_size() == 2);
  CHECK(sent.system_properties().message_group() == "k1");
  CHECK(sent.system_properties().message_type() == rocketmq::protocol::FIFO);
}

}  // namespace
}  // namespace txinbox::test
