// Consumes the files of a folder until no file has come for a second.
//
// Usage: folder_consumer FOLDER    each file is a JSON object: {"no": "order1", "sku": "tea"}

#include <cstdio>
#include <exception>

#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "folder_source.hpp"

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  if (argc != 2) {
    std::fputs("usage: folder_consumer FOLDER\n", stderr);
    return 2;
  }
  try {
    txinbox::Pool pool = txinbox::open_pool("sqlite:orders.db", {.connections = 2});
    {
      auto connection = pool.acquire();
      txinbox::migrate(connection);
      connection.session() << "create table if not exists t_order (no varchar(64), sku varchar(64))";
    }
    txinbox::TxConsumer consumer(pool, "order-service", {.max_attempts = 3});

    FolderSource source(argv[1]);
    const txinbox::RunSummary summary =
        txinbox::run(source, consumer, txinbox::key_from_json("/no"),
                     [](soci::session& sql, txinbox::Delivery& delivery) {
                       const txinbox::JsonDocument order(delivery.incoming().body);
                       const std::string no = order.text("/no").value_or("");
                       const std::string sku = order.text("/sku").value_or("");
                       if (sku.empty()) throw txinbox::Error(txinbox::ErrorCode::rejected, "an order has no sku");
                       sql << "insert into t_order(no, sku) values (:no, :sku)", soci::use(no), soci::use(sku);
                     },
                     {.idle_exit = 1s});
    std::printf("%llu orders, %llu duplicates, %llu dead letters\n", static_cast<unsigned long long>(summary.consumed),
                static_cast<unsigned long long>(summary.already_consumed),
                static_cast<unsigned long long>(summary.dead_letters));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "folder_consumer: %s\n", txinbox::describe_error(std::current_exception()).c_str());
    return 1;
  }
}
