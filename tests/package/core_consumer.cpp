// A service that uses only SQLite's own API. It consumes a message twice on its own connection.

#include <stdexcept>
#include <string>

#include <sqlite3.h>
#include <txinbox/native.hpp>
#include <txinbox/txinbox.hpp>

#ifdef SOCI_H_INCLUDED
#error "a header of txinbox has included SOCI"
#endif

int main() {
  sqlite3* db = nullptr;
  sqlite3_open(":memory:", &db);
  txinbox::migrate(db);
  sqlite3_exec(db, "create table t_order (no text)", nullptr, nullptr, nullptr);

  txinbox::TxConsumer consumer(db, "order-service");
  const auto book = [](sqlite3* connection) {
    if (sqlite3_exec(connection, "insert into t_order values ('1')", nullptr, nullptr, nullptr) != SQLITE_OK) {
      throw std::runtime_error(sqlite3_errmsg(connection));
    }
  };
  const auto first = consumer.consume({.business_key = "order1"}, book);
  const auto second = consumer.consume({.business_key = "order1"}, book);
  const bool right =
      first.outcome == txinbox::Outcome::consumed && second.outcome == txinbox::Outcome::already_consumed;

  std::string code;
  sqlite3_exec(db, "alter table txinbox_consumed_message rename to gone", nullptr, nullptr, nullptr);
  try {
    (void)consumer.consume({.business_key = "order2"}, book);
  } catch (const txinbox::DatabaseError& error) {
    code = std::string(error.database()) + " " + error.code();
  }
  sqlite3_close(db);
  return right && code == "sqlite3 1" ? 0 : 1;
}
