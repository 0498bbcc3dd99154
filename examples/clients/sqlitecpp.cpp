// A service on SQLiteCpp: an order is booked once, however often it is delivered.
//
// Usage: sqlitecpp FILE ORDER...

#include <stdexcept>

#include <SQLiteCpp/SQLiteCpp.h>
#include <txinbox/native.hpp>

#include "order_loop.hpp"

// docs/guides/clients/sqlitecpp.md: the service's own function
void book(SQLite::Database& db, const std::string& order) {
  SQLite::Statement insert(db, "insert into t_order values (?)");
  insert.bind(1, order);
  insert.exec();
  crash_if_asked(order);
  db.exec("update t_account set orders = orders + 1");
}

int main(int argc, char** argv) {
  if (argc < 2) throw std::runtime_error("usage: sqlitecpp FILE ORDER...");
  // docs/guides/clients/sqlitecpp.md: open and migrate
  SQLite::Database db(argv[1], SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, 1000);
  db.exec("pragma journal_mode = wal");
  db.exec("pragma synchronous = full");
  txinbox::migrate(db.getHandle());

  // docs/guides/clients/sqlitecpp.md: consume
  txinbox::TxConsumer consumer(db.getHandle(), "order-service");
  return deliver({argv + 2, argv + argc}, [&](const std::string& order) {
    return consumer.consume({.business_key = order}, [&](sqlite3*) { book(db, order); });
  });
}
