// A batch with one statement for all of its messages: docs/guides/batches.md.
//
// Usage: batch_handler [URL]      (by default sqlite:orders.db)

#include <iostream>
#include <string>
#include <vector>

#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "payments.hpp"

int main(int argc, char** argv) {
  auto pool = txinbox::open_pool(argc > 1 ? argv[1] : "sqlite:orders.db");
  {
    auto connection = pool.acquire();
    txinbox::migrate(connection);
    *connection << "create table if not exists balance (account varchar(64) not null primary key, "
                   "cents bigint not null)";
  }
  txinbox::TxConsumer consumer(pool, "balances");
  const std::vector<txinbox::Message> polled = {
      {.business_key = "payment1", .content = "alice 1250"},
      {.business_key = "payment2", .content = "bob 700"},
      {.business_key = "payment3", .content = "nobody knows"},  // rejected, so it is parked
      {.business_key = "payment4", .content = "alice 50"},
      {.business_key = "payment1", .content = "alice 1250"},  // sent again
  };
  // docs/guides/batches.md: consume
  const auto results = consumer.consume_batch(polled, add_payments, txinbox::OnFailure::skip);
  for (std::size_t i = 0; i < polled.size(); ++i) {
    std::cout << polled[i].business_key << ": " << to_string(results[i].outcome) << '\n';
  }

  long long cents = 0;
  auto connection = pool.acquire();
  *connection << "select cents from balance where account = 'alice'", soci::into(cents);
  std::cout << "alice: " << cents << '\n';
  return cents == 1300 ? 0 : 1;
}
