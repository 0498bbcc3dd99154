// A service that gets order messages from a broker and applies each of them once.
//
// Usage: order_service [URL]      (by default sqlite:orders.db)
//
// A list takes the place of the broker. One order is in it three times, because brokers repeat messages after a crash,
// a rebalance or a lost acknowledgement.

#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

namespace {

struct Delivered {
  std::string order_no;
  std::string sku;
  int quantity;
};

const std::vector<Delivered> broker = {
    {"A-1001", "tea", 2}, {"A-1002", "cup", 1}, {"A-1001", "tea", 2}, {"A-1003", "tea", 1}, {"A-1001", "tea", 2},
};

void create_business_tables(soci::session& sql) {
  sql << "create table if not exists t_order (order_no varchar(64) primary key, sku varchar(64), quantity integer)";
  sql << "create table if not exists t_inventory (sku varchar(64) primary key, sold integer not null)";
  int filled = 0;
  sql << "select count(*) from t_inventory", soci::into(filled);
  if (filled == 0) sql << "insert into t_inventory values ('tea', 0), ('cup', 0)";
}

/// The business SQL. It does not mention duplicates, because txinbox prevents them.
void sell(soci::session& sql, const Delivered& order) {
  sql << "insert into t_order values (:no, :sku, :quantity)", soci::use(order.order_no), soci::use(order.sku),
      soci::use(order.quantity);
  sql << "update t_inventory set sold = sold + :quantity where sku = :sku", soci::use(order.quantity),
      soci::use(order.sku);
}

/// The action for a message. The broker needs to know only this.
txinbox::Action deliver(txinbox::TxConsumer& consumer, const Delivered& order) {
  try {
    const auto result = consumer.consume({.business_key = order.order_no},
                                         [&](soci::session& sql, txinbox::Delivery&) { sell(sql, order); });
    std::cout << order.order_no << ": " << txinbox::to_string(result.outcome) << '\n';
    return txinbox::action_for(result);
  } catch (const std::exception&) {
    const auto action = txinbox::action_for(std::current_exception());
    // Do not print what(): SOCI's texts contain the bound values.
    std::cerr << order.order_no << ": failed, " << txinbox::to_string(action) << '\n';
    return action;
  }
}

int run(const std::string& url) {
  auto pool = txinbox::open_pool(url);
  {
    auto connection = pool.acquire();
    txinbox::migrate(connection);
    create_business_tables(connection);
  }

  txinbox::TxConsumer consumer(pool, "order-service");
  for (const Delivered& order : broker) {
    switch (deliver(consumer, order)) {
      case txinbox::Action::acknowledge:
        break;  // broker.acknowledge(message)
      case txinbox::Action::dead_letter:
        break;  // publish it to the dead-letter queue, then acknowledge
      case txinbox::Action::redeliver:
        break;  // broker.reject(message): it comes again
      case txinbox::Action::stop:
        return 1;
    }
  }

  auto connection = pool.acquire();
  int tea = 0;
  int cups = 0;
  *connection << "select sold from t_inventory where sku = 'tea'", soci::into(tea);
  *connection << "select sold from t_inventory where sku = 'cup'", soci::into(cups);
  std::cout << "sold: " << tea << " tea, " << cups << " cup\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "sqlite:orders.db");
  } catch (const txinbox::Error& error) {
    std::cerr << "order_service: " << error.what() << '\n';
  } catch (const std::exception&) {
    std::cerr << "order_service: the database failed\n";
  }
  return 3;
}
