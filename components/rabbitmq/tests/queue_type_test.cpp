// Streams of a real RabbitMQ broker.

#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/rabbitmq.hpp>
#include <txinbox/txinbox.hpp>

#include "rabbitmq_broker.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("RabbitMQ: a stream is refused with its name and the remedy; other queues are not") {
  RabbitMqBroker broker;
  (void)broker.create_stream("stream");
  (void)broker.create_quorum("no-stream", 5);
  const auto error_of = [](const std::string& queue) -> std::string {
    const auto source = open_rabbitmq(RabbitMqBroker::options(queue));
    try {
      for (int i = 0; i < 100 && !source->status().connected; ++i) (void)source->poll(1, 100ms);
      return source->status().connected ? "" : "not connected";
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::broker_refused);
      return error.what();
    }
  };
  CHECK(error_of("no-stream").empty());
  const std::string error = error_of("stream");
  CHECK_MESSAGE(error.find("'stream'") != std::string::npos, error);
  CHECK_MESSAGE(error.find("quorum queue") != std::string::npos, error);
}

}  // namespace
}  // namespace txinbox::test
