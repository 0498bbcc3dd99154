// Claims the message id first and the business key second: two claims in one transaction.
//
// Usage: message_id_first [URL]      (by default sqlite:orders.db)

#include <exception>
#include <iostream>
#include <string>

#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

namespace {

struct Order {
  std::string message_id;
  std::string no;
};

// docs/guides/keys-and-content.md
txinbox::Claim deliver(soci::session& sql, const Order& order) {
  txinbox::Transaction transaction(sql);
  // Always the id before the key: deliveries that claim in different orders can deadlock.
  auto claim = transaction.claim("orders.ids", {.business_key = order.message_id});
  if (claim == txinbox::Claim::claimed) {
    claim = transaction.claim("orders", {.business_key = order.no, .message_id = order.message_id});
  }
  if (claim == txinbox::Claim::claimed) sql << "insert into t_order values (:no)", soci::use(order.no);
  transaction.commit();  // for a duplicate key, too: the new id is remembered
  return claim;
}

int run(const std::string& url) {
  auto pool = txinbox::open_pool(url);
  auto connection = pool.acquire();
  txinbox::migrate(connection);
  connection.session() << "create table if not exists t_order (no text not null)";
  for (const Order& order : {Order{"m1", "order123"}, Order{"m1", "order123"}, Order{"m2", "order123"}}) {
    std::cout << txinbox::to_string(deliver(connection.session(), order)) << '\n';
  }
  int orders = 0;
  connection.session() << "select count(*) from t_order", soci::into(orders);
  std::cout << orders << " order\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "sqlite:orders.db");
  } catch (const std::exception&) {
    std::cerr << txinbox::describe_error(std::current_exception()) << '\n';
    return 1;
  }
}
