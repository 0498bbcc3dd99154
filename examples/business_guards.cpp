// Guards in the business tables, for what the inbox cannot know: the same payment under two keys, and messages that
// come in the wrong order. docs/guides/business-guards.md explains them.
//
// Usage: business_guards

#include <chrono>
#include <exception>
#include <functional>
#include <iostream>
#include <string>

#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

namespace {

/// The inbox knows the message's key. The unique index knows the payment.
void pay(soci::session& sql, txinbox::Delivery& delivery, const std::string& order, const std::string& transaction) {
  soci::statement flow = (sql.prepare << "insert into payment values (:order, :transaction) on conflict do nothing",
                          soci::use(order), soci::use(transaction));
  flow.execute(true);
  if (flow.get_affected_rows() == 0) delivery.refuse("this payment was booked under another key");
  sql << "update t_order set status = 'PAID' where order_no = :order and status = 'NEW'", soci::use(order);
}

/// Only a paid order can be shipped. If the UPDATE changes no row, the state says why.
void ship(soci::session& sql, const std::string& order) {
  soci::statement change =
      (sql.prepare << "update t_order set status = 'SHIPPED' where order_no = :order and status = 'PAID'",
       soci::use(order));
  change.execute(true);
  if (change.get_affected_rows() == 1) return;
  std::string status = "missing";
  sql << "select status from t_order where order_no = :order", soci::use(order), soci::into(status);
  if (status == "SHIPPED") return;                                           // another message did it
  if (status == "NEW") throw txinbox::RetryLater(std::chrono::seconds(10));  // too early: the payment will come
  throw txinbox::Error(txinbox::ErrorCode::rejected, "an order that is " + status + " cannot be shipped");
}

void report(const std::string& what, const std::function<txinbox::Result()>& consume) {
  try {
    const auto result = consume();
    std::cout << what << ": " << to_string(result.outcome) << (result.refused ? ", refused" : "") << '\n';
  } catch (const std::exception&) {
    std::cout << what << ": " << to_string(txinbox::action_for(std::current_exception())) << '\n';
  }
}

}  // namespace

int main() {
  auto pool = txinbox::open_pool("sqlite:orders.db");
  {
    auto connection = pool.acquire();
    txinbox::migrate(connection);
    *connection << "create table t_order (order_no text primary key, status text)";
    *connection << "create table payment (order_no text, transaction_no text, primary key (order_no, transaction_no))";
    *connection << "insert into t_order values ('order1', 'NEW'), ('order2', 'CANCELLED')";
  }
  txinbox::TxConsumer payments(pool, "payments"), shipping(pool, "shipping");
  const auto paid = [&](const std::string& key) {
    return payments.consume({.business_key = key}, [](soci::session& sql, txinbox::Delivery& delivery) {
      pay(sql, delivery, "order1", "transaction1");
    });
  };
  const auto shipped = [&](const std::string& key, const std::string& order) {
    return shipping.consume({.business_key = key}, [&](soci::session& sql, txinbox::Delivery&) { ship(sql, order); });
  };
  report("too early", [&] { return shipped("s1", "order1"); });
  report("payment", [&] { return paid("p1"); });
  report("same payment, other key", [&] { return paid("p2"); });
  report("shipment", [&] { return shipped("s1", "order1"); });
  report("same shipment, other key", [&] { return shipped("s2", "order1"); });
  report("cancelled order", [&] { return shipped("s3", "order2"); });
}
