// The README's example, as it stands there.
#include <txinbox/soci/execute.hpp>
#include <txinbox/txinbox.hpp>

int main() {
  auto pool = txinbox::open_pool("sqlite:orders.db");
  {
    auto connection = pool.acquire();
    txinbox::migrate(connection);  // or ops apply migrations/ themselves
    *connection << "create table if not exists t_order (order_no text primary key, status text)";
  }
  txinbox::TxConsumer consumer(pool, "order-service");
  auto result = consumer.consume({.business_key = "order123"}, [](soci::session& sql, txinbox::Delivery& d) {
    txinbox::execute(sql, d, "insert into t_order values (:no, 'SUCCESS')", d.message().business_key);
  });
  return result.outcome == txinbox::Outcome::consumed ? 0 : 1;  // 1 the second time: already_consumed
}
