// A service on SQLiteCpp: an order is booked once, however often it is delivered.
//
// Usage: sqlitecpp FILE ORDER...

#include <memory>
#include <stdexcept>

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>
#include <txinbox/native.hpp>

#include "order_loop.hpp"

// docs/guides/clients/sqlitecpp.md: the service's own function
void book(SQLite::Database& db, const std::string& order) {
  SQLite::Statement insert(db, "insert into t_order values (?)");
  insert.bind(1, order);
  insert.exec();
  crash_if_asked(order);
  SQLite::Statement event(db, "insert into t_event values ('booked ' || ?)");
  event.bind(1, order);
  event.exec();
}

// docs/guides/clients/sqlitecpp.md: errors
bool is_transient(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const SQLite::Exception& thrown) {
    const int code = thrown.getErrorCode();
    return code == SQLITE_BUSY || code == SQLITE_FULL || code == SQLITE_IOERR || code == SQLITE_NOMEM;
  } catch (...) {
    return false;
  }
}

// docs/guides/clients/sqlitecpp.md: consume
class OrderService {
 public:
  explicit OrderService(const std::string& file)
      : db_(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, busy_timeout_ms),
        consumer_(db_.getHandle(), "order-service",
                  {.listeners = {txinbox::on_event(log_retry)}, .is_transient = is_transient}) {
    db_.exec("pragma synchronous = full");
  }

  txinbox::Result consume(const std::string& order) {
    return consumer_.consume({.business_key = order}, [&](sqlite3*) { book(db_, order); });
  }

 private:
  static constexpr int busy_timeout_ms = 1000;
  SQLite::Database db_;  // outlives the consumer
  txinbox::TxConsumer consumer_;
};

int main(int argc, char** argv) {
  if (argc < 2) throw std::runtime_error("usage: sqlitecpp FILE ORDER...");
  const std::string file = argv[1];
  {
    // docs/guides/clients/sqlitecpp.md: migrate
    SQLite::Database db(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    db.exec("pragma journal_mode = wal");
    txinbox::migrate(db.getHandle());
    db.exec("create table if not exists t_order (no text primary key)");
    db.exec("create table if not exists t_event (text text not null)");
  }
  return deliver({argv + 2, argv + argc}, [&] { return std::make_unique<OrderService>(file); });
}
