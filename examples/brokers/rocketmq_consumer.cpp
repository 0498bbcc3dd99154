// Consumes orders from RocketMQ until none has come for some seconds.
//
// Usage: rocketmq_consumer URL    rocketmq://HOST:PORT/TOPIC?group=GROUP
// Dead letters go to the queue that the broker has for the group.
// A message is {"no": "order1", "sku": "tea"}

#include <chrono>
#include <cstdio>
#include <exception>

#include <soci/soci.h>
#include <txinbox/rocketmq.hpp>
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
  const auto source = txinbox::open_rocketmq(txinbox::rocketmq_options_from_url(url));
  const auto summary = txinbox::run(*source, consumer, txinbox::key_from("/no"), insert_order, options);
  std::printf("%llu orders, %llu duplicates, %llu dead letters\n", static_cast<unsigned long long>(summary.consumed),
              static_cast<unsigned long long>(summary.already_consumed),
              static_cast<unsigned long long>(summary.dead_letters));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: rocketmq_consumer URL\n", stderr);
    return 2;
  }
  try {
    consume(argv[1]);
    return 0;
  } catch (...) {
    std::fprintf(stderr, "rocketmq_consumer: %s\n", txinbox::describe_error(std::current_exception()).c_str());
    return 1;
  }
}
