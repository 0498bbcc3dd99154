// Consumes orders from RabbitMQ until none has come for some seconds.
//
// Usage: rabbitmq_consumer URL    amqp://USER@HOST/VHOST/QUEUE; the password is in TXINBOX_RABBITMQ_PASSWORD.
// The queue for dead letters has the same name with .dead behind it.
// A message is {"no": "order1", "sku": "tea"}

#include <chrono>
#include <cstdio>
#include <exception>

#include <soci/soci.h>
#include <txinbox/rabbitmq.hpp>
#include <txinbox/soci/execute.hpp>
#include <txinbox/txinbox.hpp>

namespace {

void insert_order(soci::session& sql, txinbox::Delivery& delivery) {
  const txinbox::JsonDocument order(delivery.incoming().body);
  const std::string no = order.text("/no").value_or("");
  const std::string sku = order.text("/sku").value_or("");
  if (sku.empty()) throw txinbox::Error(txinbox::ErrorCode::rejected, "an order has no sku");
  txinbox::execute(sql, delivery, "insert into t_order(no, sku) values (:no, :sku)", no, sku);
}

void consume(const char* url) {
  txinbox::Pool pool = txinbox::open_pool("sqlite:orders.db");
  {
    auto connection = pool.acquire();
    txinbox::migrate(connection);
    connection.session() << "create table if not exists t_order (no varchar(64), sku varchar(64))";
  }
  txinbox::TxConsumer consumer(pool, "order-service", {.max_attempts = 3});
  const txinbox::RunOptions options{.idle_exit = std::chrono::seconds(4)};
  txinbox::RabbitMqOptions broker = txinbox::rabbitmq_options_from_url(url);
  broker.dead_letters = broker.queue + ".dead";
  const auto source = txinbox::open_rabbitmq(broker);
  const auto summary = txinbox::run(*source, consumer, txinbox::key_from("/no"), insert_order, options);
  std::printf("%llu orders, %llu duplicates, %llu dead letters\n", static_cast<unsigned long long>(summary.consumed),
              static_cast<unsigned long long>(summary.already_consumed),
              static_cast<unsigned long long>(summary.dead_letters));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: rabbitmq_consumer URL\n", stderr);
    return 2;
  }
  try {
    consume(argv[1]);
    return 0;
  } catch (...) {
    std::fprintf(stderr, "rabbitmq_consumer: %s\n", txinbox::describe_error(std::current_exception()).c_str());
    return 1;
  }
}
