// Erases what the inbox holds of a message: the message still does not run again.
//
// Usage: personal_data [URL]      (by default sqlite:orders.db)

#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include <soci/soci.h>
#include <txinbox/operations.hpp>
#include <txinbox/txinbox.hpp>

// docs/guides/personal-data.md
std::vector<std::string> erase_all(soci::session& sql, const std::vector<std::string>& keys,
                                   const txinbox::EraseOptions& options) {
  const txinbox::OperatorAction by{.actor = "privacy-job", .reason = "request 17"};
  const auto outcomes = txinbox::erase(sql, "order-service", keys, by, options);
  std::vector<std::string> left;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (outcomes[i] != txinbox::EraseOutcome::erased) left.push_back(keys[i]);
  }
  return left;
}

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "sqlite:orders.db";
  auto pool = txinbox::open_pool(url);
  {
    auto connection = pool.acquire();
    txinbox::migrate(connection);
  }
  const auto deliver = [&] {
    txinbox::TxConsumer consumer(pool, "order-service");
    const auto result =
        consumer.consume({.business_key = "ann@example.org"}, [](soci::session&, txinbox::Delivery&) {});
    std::cout << txinbox::to_string(result.outcome) << '\n';
  };
  deliver();
  {
    // No consumer runs while this program erases, so it need not wait.
    auto connection = pool.acquire();
    const auto left = erase_all(connection, {"ann@example.org", "unknown"}, {.no_consumer_runs = true});
    std::cout << left.size() << " not erased\n";
  }
  deliver();
}
