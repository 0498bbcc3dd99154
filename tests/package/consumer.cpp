// A user's program. It consumes a message twice, and the handler does not run the second time.

#include <iostream>

#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

int main() {
  auto pool = txinbox::open_pool("sqlite::memory:", {.connections = 1});
  {
    auto connection = pool.acquire();
    txinbox::migrate(connection);
    connection.session() << "create table effect (id text)";
  }

  txinbox::TxConsumer consumer(pool, "package-test");
  const auto deliver = [&] {
    return consumer
        .consume({.business_key = "order123"},
                 [](soci::session& sql, txinbox::Delivery& delivery) {
                   sql << "insert into effect values (:id)", soci::use(delivery.message().business_key);
                 })
        .outcome;
  };
  const auto first = deliver();
  const auto second = deliver();

  int effects = 0;
  pool.acquire().session() << "select count(*) from effect", soci::into(effects);
  std::cout << txinbox::version() << ": " << txinbox::to_string(first) << ", " << txinbox::to_string(second) << ", "
            << effects << " effect\n";
  const bool right =
      first == txinbox::Outcome::consumed && second == txinbox::Outcome::already_consumed && effects == 1;
  return right ? 0 : 1;
}
