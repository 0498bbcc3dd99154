#include <string>

#include <doctest/doctest.h>

#include "cli/consume/broker_run.hpp"

namespace txinbox::cli {
namespace {

Order order(const std::string& from, std::size_t workers, const std::string& wanted = "") {
  ConsumeOptions options;
  options.from = from;
  options.workers = workers;
  options.order = wanted;
  return order_of(options);
}

TEST_CASE("only on Kafka do several workers order by the record key, unless --order says something else") {
  const std::string kafka = "kafka://broker:9092/orders?group=g";
  const std::string rocketmq = "rocketmq://broker:8081/orders?group=g";
  CHECK(order(kafka, 1) == Order::lane);
  CHECK(order(kafka, 4) == Order::key);
  CHECK(order(kafka, 4, "lane") == Order::lane);
  CHECK(order(kafka, 1, "key") == Order::key);
  CHECK(order(rocketmq, 4) == Order::lane);
  CHECK(order(rocketmq, 4, "key") == Order::key);
  CHECK(order("amqps://u@broker/%2F/orders", 4) == Order::lane);
}

}  // namespace
}  // namespace txinbox::cli
