// A service on SQLite's own interface: an order is booked once, however often it is delivered.
//
// Usage: sqlite3 FILE ORDER...

#include <memory>
#include <stdexcept>

#include <sqlite3.h>
#include <txinbox/native.hpp>

#include "order_loop.hpp"

using Connection = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;

// docs/guides/clients/sqlite3.md: the service's own functions
void run(sqlite3* db, const char* sql, const std::string& parameter = {}) {
  sqlite3_stmt* statement = nullptr;
  bool done = sqlite3_prepare_v2(db, sql, -1, &statement, nullptr) == SQLITE_OK;
  if (done && sqlite3_bind_parameter_count(statement) > 0) {
    sqlite3_bind_text(statement, 1, parameter.c_str(), -1, SQLITE_TRANSIENT);
  }
  done = done && sqlite3_step(statement) == SQLITE_DONE;
  sqlite3_finalize(statement);
  if (!done) throw std::runtime_error(sqlite3_errmsg(db));
}

void book(sqlite3* db, const std::string& order) {
  run(db, "insert into t_order values (?)", order);
  crash_if_asked(order);
  run(db, "update t_account set orders = orders + 1");
}

int main(int argc, char** argv) {
  if (argc < 2) throw std::runtime_error("usage: sqlite3 FILE ORDER...");
  // docs/guides/clients/sqlite3.md: open and migrate
  sqlite3* opened = nullptr;
  const int result = sqlite3_open(argv[1], &opened);
  const Connection db(opened, &sqlite3_close);
  if (result != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(db.get()));
  sqlite3_busy_timeout(db.get(), 1000);
  sqlite3_exec(db.get(), "pragma journal_mode = wal; pragma synchronous = full", nullptr, nullptr, nullptr);
  txinbox::migrate(db.get());

  // docs/guides/clients/sqlite3.md: consume
  txinbox::TxConsumer consumer(db.get(), "order-service");
  return deliver({argv + 2, argv + argc}, [&](const std::string& order) {
    return consumer.consume({.business_key = order}, [&](sqlite3* connection) { book(connection, order); });
  });
}
