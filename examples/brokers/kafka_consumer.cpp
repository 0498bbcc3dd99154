// A service that consumes orders from Kafka until it gets SIGTERM or SIGINT.
//
// Usage: kafka_consumer BROKERS    the topics orders and orders.dead must exist.
// A message is {"no": "order1", "sku": "tea"}

#include <csignal>

#include <cstdio>
#include <exception>
#include <stop_token>
#include <string>
#include <thread>

#include <soci/soci.h>
#include <txinbox/kafka.hpp>
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

void make_tables() {
  txinbox::Pool pool = txinbox::open_pool("sqlite:orders.db");
  auto connection = pool.acquire();
  txinbox::migrate(connection);
  connection.session() << "create table if not exists t_order (no varchar(64), sku varchar(64))";
}

void consume(const char* brokers, const std::stop_token& stop) {
  auto pool = txinbox::open_pool("sqlite:orders.db");
  txinbox::TxConsumer consumer(pool, "order-service", {.stop = stop, .max_attempts = 3});
  const auto source = txinbox::open_kafka({
      .brokers = brokers,
      .group = "order-service",
      .topics = {"orders"},
      .dead_letters = "orders.dead",
  });
  const auto summary = txinbox::run(*source, consumer, txinbox::key_from("/no"), insert_order);
  std::printf("%llu orders, %llu duplicates, %llu dead letters\n", static_cast<unsigned long long>(summary.consumed),
              static_cast<unsigned long long>(summary.already_consumed),
              static_cast<unsigned long long>(summary.dead_letters));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: kafka_consumer BROKERS\n", stderr);
    return 2;
  }
  sigset_t signals;  // blocked before the first thread begins, so that all threads inherit it
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::stop_source stop;
  std::thread([signals, stop]() mutable {
    int signal = 0;
    sigwait(&signals, &signal);
    stop.request_stop();
  }).detach();
  try {
    make_tables();
    consume(argv[1], stop.get_token());
    return 0;
  } catch (...) {
    std::fprintf(stderr, "kafka_consumer: %s\n", txinbox::describe_error(std::current_exception()).c_str());
    return 1;
  }
}
