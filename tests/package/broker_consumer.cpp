// A service without SOCI that uses the brokers' components and Redis. It links only txinbox::core and the components.

#include <txinbox/kafka.hpp>
#include <txinbox/rabbitmq.hpp>
#include <txinbox/redis.hpp>
#include <txinbox/rocketmq.hpp>
#include <txinbox/txinbox.hpp>

#ifdef SOCI_H_INCLUDED
#error "a header of txinbox has included SOCI"
#endif

int main() {
  const txinbox::KafkaOptions kafka =
      txinbox::kafka_options_from_url("kafka://127.0.0.1:9092/orders?group=order-service");
  const txinbox::RabbitMqOptions rabbitmq = txinbox::rabbitmq_options_from_url("amqp://127.0.0.1/shop/orders");
  const txinbox::RocketMqOptions rocketmq = txinbox::rocketmq_options_from_url("rocketmq://127.0.0.1/orders?group=g");
  if (txinbox::open_rocketmq(rocketmq)->status().connected) return 1;
  if (kafka.group != "order-service" || rabbitmq.queue != "orders") return 1;
  txinbox::LeaseConsumer consumer(txinbox::open_redis("redis://127.0.0.1:6379/2"), "order-service");
  if (consumer.name() != "order-service") return 1;
  try {
    txinbox::open_kafka({});
  } catch (const txinbox::Error& error) {
    return error.code() == txinbox::ErrorCode::invalid_argument ? 0 : 1;
  }
  return 1;
}
