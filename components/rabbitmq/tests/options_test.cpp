// The options of a RabbitMQ source: which values are refused, and that no error text contains a password.

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>
#include <txinbox/error.hpp>
#include <txinbox/rabbitmq.hpp>

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

TEST_CASE("a RabbitMQ URL has host, virtual host, queue and parameters") {
  ::unsetenv("TXINBOX_RABBITMQ_PASSWORD");
  RabbitMqOptions options =
      rabbitmq_options_from_url("amqp://svc@h.example:5673/%2F/or%2Fders?prefetch=7&heartbeat=9&delivery_limit=20");
  CHECK(options.server.host == "h.example");
  CHECK(options.server.port == 5673);
  CHECK(options.server.user == "svc");
  CHECK(options.server.password.empty());
  CHECK(options.server.vhost == "/");
  CHECK(options.queue == "or/ders");
  CHECK(options.prefetch == 7);
  CHECK(options.heartbeat == std::chrono::seconds(9));
  CHECK(options.delivery_limit == 20);
  CHECK_FALSE(options.server.tls);
  options = rabbitmq_options_from_url("amqps://[::1]:5671/v/q?ca_file=/x/ca.pem&exclusive=true&dead_letters=d");
  CHECK(options.server.tls);
  CHECK(options.server.host == "::1");
  CHECK(options.server.port == 5671);
  CHECK(options.server.user == "guest");
  CHECK(options.server.ca_file == "/x/ca.pem");
  CHECK(options.exclusive);
  CHECK(options.dead_letters == "d");
  ::setenv("TXINBOX_RABBITMQ_PASSWORD", "hunter2", 1);
  CHECK(rabbitmq_options_from_url("amqp://h/v/q").server.password == "hunter2");
}

TEST_CASE("an invalid RabbitMQ URL is refused, and the error text does not contain it") {
  for (const std::string url : {"",
                                "amqp:",
                                "amqp://",
                                "amqp://h",
                                "amqp://h/q",
                                "amqp://h//q",
                                "amqp://h/v/",
                                "amqp:///v/q",
                                "http://h/v/q",
                                "amqp://u:hunter2@h/v/q",
                                "amqp://h:port/v/q",
                                "amqp://h:99999/v/q",
                                "amqp://h/v/q?other=1",
                                "amqp://h/v/q?prefetch=many",
                                "amqp://h/v/q?prefetch=99999",
                                "amqp://h/v/q?exclusive=maybe",
                                "amqp://h/v/q?x",
                                "amqp://h/v/q%2",
                                "amqp://h/v/q%00",
                                "amqp://[::1/v/q"}) {
    CAPTURE(url);
    const std::string text = refusal_of([&] { (void)rabbitmq_options_from_url(url); });
    CHECK_FALSE(text.empty());
    CHECK(text.find("hunter2") == std::string::npos);
  }
}

TEST_CASE("invalid options of RabbitMQ are refused") {
  const auto refused = [](auto change) {
    RabbitMqOptions options;
    options.queue = "orders";
    change(options);
    return !refusal_of([&] { (void)open_rabbitmq(options); }).empty();
  };
  CHECK_FALSE(refused([](auto&) {}));
  CHECK(refused([](auto& o) { o.server.host = ""; }));
  CHECK(refused([](auto& o) { o.queue = ""; }));
  CHECK(refused([](auto& o) { o.queue = std::string(256, 'q'); }));
  CHECK(refused([](auto& o) { o.dead_letters = "orders"; }));
  CHECK(refused([](auto& o) { o.prefetch = 0; }));
  CHECK(refused([](auto& o) { o.delivery_limit = -1; }));
  CHECK(refused([](auto& o) { o.heartbeat = std::chrono::seconds(0); }));
  CHECK(refused([](auto& o) { o.dead_letter_timeout = std::chrono::milliseconds::max(); }));
  CHECK(refused([](auto& o) { o.server.ca_file = "ca.pem"; }));
  CHECK(refused([](auto& o) {
    o.server.tls = true;
    o.server.key_file = "key.pem";
  }));
}

TEST_CASE("the URL of a RabbitMQ publisher has host, virtual host and optionally an exchange, and no password") {
  ::setenv("TXINBOX_RABBITMQ_PASSWORD", "hunter2", 1);
  RabbitMqPublisherOptions options = rabbitmq_publisher_options_from_url("amqp://svc@h.example:5673/%2F");
  CHECK(options.server.host == "h.example");
  CHECK(options.server.port == 5673);
  CHECK(options.server.user == "svc");
  CHECK(options.server.password == "hunter2");
  CHECK(options.server.vhost == "/");
  CHECK(options.exchange.empty());
  options = rabbitmq_publisher_options_from_url("amqps://h/v/or%2Fders?ca_file=/x/ca.pem");
  CHECK(options.exchange == "or/ders");
  CHECK(options.server.tls);
  CHECK(options.server.ca_file == "/x/ca.pem");
  for (const std::string url : {"", "amqp://", "amqp://h", "amqp://h/", "amqp://h/v/", "http://h/v",
                                "amqp://u:hunter2@h/v", "amqp://h/v?prefetch=7", "amqp://h/v?dead_letters=d",
                                "amqp://h/v?exclusive=true", "amqp://h/v?heartbeat=9", "amqp://h/v?delivery_limit=9"}) {
    CAPTURE(url);
    const std::string text = refusal_of([&] { (void)rabbitmq_publisher_options_from_url(url); });
    CHECK_FALSE(text.empty());
    CHECK(text.find("hunter2") == std::string::npos);
  }
  const auto refused = [](auto change) {
    RabbitMqPublisherOptions wrong;
    change(wrong);
    return !refusal_of([&] { (void)rabbitmq_publisher(wrong); }).empty();
  };
  CHECK_FALSE(refused([](auto&) {}));
  CHECK(refused([](auto& o) { o.server.host = ""; }));
  CHECK(refused([](auto& o) { o.exchange = std::string(256, 'e'); }));
  CHECK(refused([](auto& o) { o.timeout = std::chrono::milliseconds(0); }));
  CHECK(refused([](auto& o) { o.timeout = std::chrono::milliseconds::max(); }));
  CHECK(refused([](auto& o) { o.server.ca_file = "ca.pem"; }));
}

}  // namespace
}  // namespace txinbox::test
