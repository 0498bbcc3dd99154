#include <string>

#include <doctest/doctest.h>

#include "cli/brokers/prefetch.hpp"
#include "cli/consume/broker_run.hpp"

namespace txinbox::cli {
namespace {

Ordering order(const std::string& from, std::size_t workers, const std::string& wanted = "") {
  ConsumeOptions options;
  options.from = from;
  options.workers = workers;
  options.order = wanted;
  return order_of(options);
}

TEST_CASE("only on Kafka do several workers order by the record key, unless --order says something else") {
  const std::string kafka = "kafka://broker:9092/orders?group=g";
  const std::string rocketmq = "rocketmq://broker:8081/orders?group=g";
  CHECK(order(kafka, 1) == Ordering::lane);
  CHECK(order(kafka, 4) == Ordering::key);
  CHECK(order(kafka, 4, "lane") == Ordering::lane);
  CHECK(order(kafka, 1, "key") == Ordering::key);
  CHECK(order(rocketmq, 4) == Ordering::lane);
  CHECK(order(rocketmq, 4, "key") == Ordering::key);
  CHECK(order("amqps://u@broker/%2F/orders", 4) == Ordering::lane);
}

TEST_CASE("the prefetch of RabbitMQ leaves room for the messages that all workers hold, and for those that wait") {
  CHECK(prefetch_for(400) == 1000);
  CHECK(prefetch_for(3 * 400) == 1800);
  CHECK(prefetch_for(1'000'000) == 65'535);
}

}  // namespace
}  // namespace txinbox::cli
