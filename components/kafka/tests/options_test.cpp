// The options of a Kafka source: which values are refused, and that no error text contains a password.

#include <cstdlib>
#include <map>
#include <string>

#include <doctest/doctest.h>
#include <txinbox/error.hpp>
#include <txinbox/kafka.hpp>

namespace txinbox::test {
namespace {

std::string refusal_of(const auto& function) {
  try {
    function();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

TEST_CASE("a Kafka URL has brokers, topics, a group and properties") {
  const KafkaOptions options = kafka_options_from_url(
      "kafka://a:9092,b:9093/"
      "orders,pay%2Fments?group=g%20h&group.instance.id=i&dead_letters=d&security.protocol=SASL_SSL"
      "&session.timeout.ms=9000&max.poll.interval.ms=60000");
  CHECK(options.brokers == "a:9092,b:9093");
  CHECK(options.topics == std::vector<std::string>{"orders", "pay/ments"});
  CHECK(options.group == "g h");
  CHECK(options.dead_letters == "d");
  CHECK(options.properties == std::map<std::string, std::string>{{"group.instance.id", "i"},
                                                                 {"max.poll.interval.ms", "60000"},
                                                                 {"security.protocol", "SASL_SSL"},
                                                                 {"session.timeout.ms", "9000"}});
}

TEST_CASE("the time for dead letters, and a property without a dot, can stand in the URL") {
  const KafkaOptions options = kafka_options_from_url("kafka://h/orders?group=g&message.timeout.ms=7000&debug=cgrp");
  CHECK(options.dead_letter_timeout == std::chrono::milliseconds(7000));
  CHECK(options.properties.at("debug") == "cgrp");
}

TEST_CASE("an invalid Kafka URL is refused, and the error text does not contain it") {
  for (const std::string url :
       {"", "kafka:", "kafka://", "kafka:///orders?group=g", "kafka://h?group=g", "kafka://h/?group=g",
        "kafka://h/orders", "kafka://h/orders?group=", "kafka://h/orders?group", "kafka://h/orders?group=g&other=1",
        "http://h/orders?group=g", "kafka://user@h/orders?group=g", "kafka://h/orders?group=g&sasl.password=hunter2",
        "kafka://h/orders?group=g&ssl.key.password=hunter2", "kafka://h/orders?group=%g",
        "kafka://h/orders?group=g&message.timeout.ms=soon", "kafka://h/orders?group=%00"}) {
    CAPTURE(url);
    const std::string text = refusal_of([&] { (void)kafka_options_from_url(url); });
    CHECK_FALSE(text.empty());
    CHECK(text.find("hunter2") == std::string::npos);
  }
}

TEST_CASE("the password comes from the environment") {
  ::setenv("TXINBOX_KAFKA_PASSWORD", "hunter2", 1);
  CHECK(kafka_options_from_url("kafka://h/orders?group=g").properties.at("sasl.password") == "hunter2");
  ::unsetenv("TXINBOX_KAFKA_PASSWORD");
  CHECK(kafka_options_from_url("kafka://h/orders?group=g").properties.empty());
}

TEST_CASE("invalid options and properties are refused, and the error text does not contain their values") {
  const KafkaOptions good{.brokers = "127.0.0.1:1", .group = "g", .topics = {"orders"}};
  CHECK(refusal_of([&] { (void)open_kafka(good); }).empty());
  const auto refused = [&](auto change) {
    KafkaOptions options = good;
    change(options);
    return refusal_of([&] { (void)open_kafka(options); });
  };
  CHECK(refused([](auto& o) { o.brokers = ""; }).find("brokers") != std::string::npos);
  CHECK(refused([](auto& o) { o.group = ""; }).find("group") != std::string::npos);
  CHECK(refused([](auto& o) { o.topics = {}; }).find("topics") != std::string::npos);
  CHECK(refused([](auto& o) { o.topics = {""}; }).find("topics") != std::string::npos);
  CHECK(refused([](auto& o) { o.dead_letters = "orders"; }).find("own dead letters") != std::string::npos);
  CHECK(refused([](auto& o) { o.dead_letter_timeout = std::chrono::milliseconds::max(); }).find("timeout") !=
        std::string::npos);
  CHECK(refused([](auto& o) {
          o.topics = {"payments", "^orders.*"};
          o.dead_letters = "orders.dead";
        }).find("(^orders.*)") != std::string::npos);
  CHECK(refused([](auto& o) {
          o.topics = {"^orders$"};
          o.dead_letters = "orders.dead";
        }).empty());
  CHECK(refused([](auto& o) {
          o.properties = {{"session.timeout.ms", "9000"}, {"max.poll.interval.ms", "8000"}};
        }).find("time-outs") != std::string::npos);
  for (const char* property : {"enable.auto.commit", "enable.auto.offset.store", "group.id", "acks",
                               "bootstrap.servers", "no.such.property", "session.timeout.ms"}) {
    CAPTURE(property);
    const std::string text = refused([&](auto& o) { o.properties[property] = "hunter2"; });
    CHECK(text.find(property) != std::string::npos);
    CHECK(text.find("hunter2") == std::string::npos);
  }
  const std::string text = refused([](auto& o) { o.properties["security.protocol"] = "hunter2"; });
  CHECK(text.find("security.protocol") != std::string::npos);
  CHECK(text.find("hunter2") == std::string::npos);
}

}  // namespace
}  // namespace txinbox::test
