// Queues and consumers that are exclusive, on a real broker.

#include <chrono>
#include <string>

#include <doctest/doctest.h>
#include <txinbox/error.hpp>

#include "rabbitmq_broker.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// Polls until the source is connected, or throws an error.
void connect(Source& source) {
  for (int i = 0; i < 100 && !source.status().connected; ++i) (void)source.poll(1, 100ms);
}

TEST_CASE("RabbitMQ: if another consumer or connection has the queue for itself, the error says so") {
  RabbitMqBroker broker;
  (void)broker.create("exclusive");
  const auto error_of = [](const RabbitMqOptions& options) -> std::string {
    try {
      const auto source = open_rabbitmq(options);
      connect(*source);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  RabbitMqOptions options = RabbitMqBroker::options("exclusive");
  {
    const auto first = open_rabbitmq(options);
    connect(*first);
    options.exclusive = true;
    CHECK(error_of(options).find("end the other consumers") != std::string::npos);
  }
  {
    const auto first = open_rabbitmq(options);
    connect(*first);
    options.exclusive = false;
    const std::string error = error_of(options);
    CHECK_MESSAGE(error.find("end the other consumers") != std::string::npos, error);
    CHECK(error.find("password") == std::string::npos);
  }
  broker.declare_exclusive("locked");
  options.queue = "locked";
  CHECK(error_of(options).find("has declared the queue exclusive") != std::string::npos);
}

}  // namespace
}  // namespace txinbox::test
