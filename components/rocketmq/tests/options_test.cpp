// The options of a RocketMQ source and publisher: which values are refused, and that no error text contains a secret.

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>
#include <txinbox/error.hpp>
#include <txinbox/rocketmq.hpp>

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

std::string refusal_of(const auto& function) {
  try {
    function();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

TEST_CASE("a RocketMQ URL has host, topic, group and parameters") {
  const RocketMqOptions options = rocketmq_options_from_url(
      "rocketmqs://key@h:9081/orders?group=g%20h&tags=a%20%7C%7C%20b&invisible=20&receives=2&ca_file=ca.pem"
      "&certificate_file=c.pem&key_file=k.pem");
  CHECK(options.server.host == "h");
  CHECK(options.server.port == 9081);
  CHECK(options.server.access_key == "key");
  CHECK(options.topic == "orders");
  CHECK(options.group == "g h");
  CHECK(options.tags == "a || b");
  CHECK(options.invisible == 20s);
  CHECK(options.receives == 2);
  CHECK(options.server.tls);
  CHECK(options.server.ca_file == "ca.pem");
  CHECK(options.server.certificate_file == "c.pem");
  CHECK(options.server.key_file == "k.pem");
  const RocketMqOptions plain = rocketmq_options_from_url("rocketmq://h/orders?group=g");
  CHECK_FALSE(plain.server.tls);
  CHECK(plain.server.port == 8081);
  CHECK(plain.tags == "*");
  const RocketMqPublisherOptions publisher = rocketmq_publisher_options_from_url("rocketmqs://key@h:1?fifo=true");
  CHECK(publisher.fifo);
  CHECK(publisher.server.tls);
  CHECK(publisher.server.port == 1);
}

TEST_CASE("an invalid RocketMQ URL is refused, and the error text does not contain it") {
  for (const std::string url :
       {"", "rocketmq:", "rocketmq://", "rocketmq://h?group=g", "rocketmq://h/?group=g", "rocketmq://h/orders",
        "rocketmq://h/orders?group=", "rocketmq://h/orders?group=g&other=1", "http://h/orders?group=g",
        "rocketmq://user:hunter2@h/orders?group=g", "rocketmq://h/orders?group=g&secret=hunter2",
        "rocketmq://h:99999/orders?group=g", "rocketmq://h/orders?group=g&invisible=soon"}) {
    CAPTURE(url);
    const std::string text = refusal_of([&] { (void)rocketmq_options_from_url(url); });
    CHECK_FALSE(text.empty());
    CHECK(text.find("hunter2") == std::string::npos);
  }
  for (const std::string url : {"rocketmq://h/orders", "rocketmq://h?fifo=1", "rocketmq://h?group=g", "kafka://h"}) {
    CAPTURE(url);
    CHECK_FALSE(refusal_of([&] { (void)rocketmq_publisher_options_from_url(url); }).empty());
  }
}

TEST_CASE("the secret of RocketMQ comes from the environment") {
  ::setenv("TXINBOX_ROCKETMQ_SECRET", "hunter2", 1);
  CHECK(rocketmq_options_from_url("rocketmq://key@h/orders?group=g").server.secret == "hunter2");
  CHECK(rocketmq_options_from_url("rocketmq://h/orders?group=g").server.secret.empty());
  CHECK(rocketmq_publisher_options_from_url("rocketmq://key@h").server.secret == "hunter2");
  ::unsetenv("TXINBOX_ROCKETMQ_SECRET");
  CHECK(rocketmq_options_from_url("rocketmq://key@h/orders?group=g").server.secret.empty());
}

TEST_CASE("invalid options of RocketMQ are refused") {
  const auto refusal = [](auto change) {
    RocketMqOptions options{.topic = "t", .group = "g"};
    change(options);
    return refusal_of([&] { (void)open_rocketmq(options); });
  };
  CHECK(refusal([](auto&) {}).empty());
  CHECK_FALSE(refusal([](auto& o) { o.topic.clear(); }).empty());
  CHECK_FALSE(refusal([](auto& o) { o.group.clear(); }).empty());
  CHECK_FALSE(refusal([](auto& o) { o.topic = "%DLQ%g"; }).empty());
  CHECK(refusal([](auto& o) { o.topic = "%DLQ%other"; }).empty());
  CHECK_FALSE(refusal([](auto& o) { o.server.host.clear(); }).empty());
  CHECK_FALSE(refusal([](auto& o) { o.invisible = 9s; }).empty());
  CHECK_FALSE(refusal([](auto& o) { o.invisible = 13h; }).empty());
  CHECK_FALSE(refusal([](auto& o) { o.receives = 0; }).empty());
  CHECK_FALSE(refusal([](auto& o) { o.server.access_key = "key"; }).empty());
  CHECK_FALSE(refusal([](auto& o) { o.server.certificate_file = "c"; }).empty());
  const std::string missing = refusal([](auto& o) {
    o.server.tls = true;
    o.server.ca_file = "missing.pem";
  });
  CHECK(missing.find("missing.pem") != std::string::npos);
  CHECK_FALSE(refusal([](auto& o) { o.dead_letter_timeout = std::chrono::milliseconds::max(); }).empty());
  CHECK_FALSE(refusal_of([] { (void)rocketmq_publisher({.timeout = 0ms}); }).empty());
  CHECK_FALSE(refusal_of([] { (void)rocketmq_publisher({.timeout = std::chrono::milliseconds::max()}); }).empty());
}

}  // namespace
}  // namespace txinbox::test
