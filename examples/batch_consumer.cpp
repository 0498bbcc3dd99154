// The batches of docs/guides/batches.md: one transaction for all messages of a poll.
//
// Usage: batch_consumer [URL]      (by default sqlite:orders.db)

#include <iostream>
#include <string>
#include <vector>

#include <soci/soci.h>
#include <txinbox/soci/execute.hpp>
#include <txinbox/txinbox.hpp>

void publish_to_dead_letters(const txinbox::Message& message) {
  std::cout << "dead letter: " << message.business_key << '\n';
}

// docs/guides/batches.md
std::size_t consume_poll(txinbox::TxConsumer& consumer, const std::vector<txinbox::Message>& polled) {
  const auto results = consumer.consume_batch(polled, [](soci::session& sql, txinbox::Delivery& d) {
    txinbox::execute(sql, d, "insert into payment values (:no)", d.message().business_key);
  });
  std::size_t done = 0;  // commit the broker's offset up to here; the rest is delivered again
  for (; done < results.size(); ++done) {
    const auto action = action_for(results[done]);
    if (action == txinbox::Action::dead_letter) {
      publish_to_dead_letters(polled[done]);
    } else if (action != txinbox::Action::acknowledge) {
      break;
    }
  }
  return done;
}

int main(int argc, char** argv) {
  auto pool = txinbox::open_pool(argc > 1 ? argv[1] : "sqlite:orders.db");
  {
    auto connection = pool.acquire();
    txinbox::migrate(connection);
    *connection << "create table if not exists payment (order_no varchar(255) not null)";
  }
  txinbox::TxConsumer consumer(pool, "payment-service");
  const std::vector<txinbox::Message> polled = {
      {.business_key = "order1", .content = "12.50 EUR"},
      {.business_key = "order2", .content = "7.00 EUR"},
      {.business_key = "order1", .content = "12.50 EUR"},  // sent again
  };
  std::cout << "acknowledged up to " << consume_poll(consumer, polled) << '\n';

  long long payments = 0;
  auto connection = pool.acquire();
  *connection << "select count(*) from payment", soci::into(payments);
  std::cout << "payments: " << payments << '\n';
  return payments == 2 ? 0 : 1;
}
