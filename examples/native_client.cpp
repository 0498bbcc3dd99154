// A handler that uses the database's own client library instead of SOCI: here SQLite's.
//
// Usage: native_client      (on sqlite:orders.db)

#include <iostream>
#include <stdexcept>
#include <string>

#include <sqlite3.h>
#include <txinbox/native.hpp>
#include <txinbox/txinbox.hpp>

// docs/guides/other-clients.md: the service's own function
void book(sqlite3* db, const std::string& order) {
  sqlite3_stmt* insert = nullptr;
  const bool done = sqlite3_prepare_v2(db, "insert into t_order (no) values (?)", -1, &insert, nullptr) == SQLITE_OK &&
                    sqlite3_bind_text(insert, 1, order.c_str(), -1, SQLITE_TRANSIENT) == SQLITE_OK &&
                    sqlite3_step(insert) == SQLITE_DONE;
  sqlite3_finalize(insert);
  if (!done) throw std::runtime_error("the order was not booked");
}

int main() {
  auto pool = txinbox::open_pool("sqlite:orders.db");
  {
    auto connection = pool.acquire();
    txinbox::migrate(connection);
    sqlite3_exec(txinbox::native_handle(connection).sqlite3(), "create table if not exists t_order (no text)", nullptr,
                 nullptr, nullptr);
  }
  txinbox::TxConsumer consumer(pool, "order-service");
  const std::string order = "order1";
  for (int delivery = 1; delivery <= 2; ++delivery) {
    // docs/guides/other-clients.md: the handler
    const auto result = consumer.consume({.business_key = order}, [&](soci::session& session, txinbox::Delivery&) {
      book(txinbox::native_handle(session).sqlite3(), order);
    });
    std::cout << to_string(result.outcome) << '\n';
  }
  return 0;
}
