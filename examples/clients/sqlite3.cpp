// A service on SQLite's own interface: an order is booked once, however often it is delivered.
//
// Usage: sqlite3 FILE ORDER...

#include <memory>
#include <stdexcept>

#include <sqlite3.h>
#include <txinbox/native.hpp>

#include "order_loop.hpp"

// docs/guides/clients/sqlite3.md: the service's own functions
void run(sqlite3* db, const char* sql, const std::string& parameter) {
  sqlite3_stmt* statement = nullptr;
  const bool done = sqlite3_prepare_v2(db, sql, -1, &statement, nullptr) == SQLITE_OK &&
                    sqlite3_bind_text(statement, 1, parameter.c_str(), -1, SQLITE_TRANSIENT) == SQLITE_OK &&
                    sqlite3_step(statement) == SQLITE_DONE;
  sqlite3_finalize(statement);
  if (!done) throw std::runtime_error(sqlite3_errmsg(db));
}

void book(sqlite3* db, const std::string& order) {
  run(db, "insert into t_order values (?)", order);
  crash_if_asked(order);
  run(db, "insert into t_event values ('booked ' || ?)", order);
}

// docs/guides/clients/sqlite3.md: open
using Connection = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;

void set_up(sqlite3* db, const char* sql) {
  if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(db));
}

Connection open_file(const char* file) {
  sqlite3* opened = nullptr;
  const int result = sqlite3_open(file, &opened);
  Connection db(opened, &sqlite3_close);
  if (result != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(db.get()));
  sqlite3_busy_timeout(db.get(), 1000);
  set_up(db.get(), "pragma journal_mode = wal; pragma synchronous = full");
  return db;
}

// docs/guides/clients/sqlite3.md: consume
class OrderService {
 public:
  explicit OrderService(const char* file)
      : db_(open_file(file)), consumer_(db_.get(), "order-service", {.listeners = {txinbox::on_event(log_retry)}}) {}

  txinbox::Result consume(const std::string& order) {
    return consumer_.consume({.business_key = order}, [&](sqlite3* db) { book(db, order); });
  }

 private:
  Connection db_;  // outlives the consumer
  txinbox::TxConsumer consumer_;
};

int main(int argc, char** argv) {
  if (argc < 2) throw std::runtime_error("usage: sqlite3 FILE ORDER...");
  const char* file = argv[1];
  {
    // docs/guides/clients/sqlite3.md: migrate
    const Connection db = open_file(file);
    txinbox::migrate(db.get());
    set_up(db.get(), "create table if not exists t_order (no text primary key)");
    set_up(db.get(), "create table if not exists t_event (text text not null)");
  }
  return deliver({argv + 2, argv + argc}, [&] { return std::make_unique<OrderService>(file); });
}
