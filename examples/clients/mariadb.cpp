// A service on the client library of MariaDB or MySQL: an order is booked once, however often it is delivered.
//
// Usage: mariadb OPTION_FILE ORDER...      (the file's group [client] has host, user, password, database)

#include <memory>
#include <stdexcept>

#include <mysql.h>
#include <txinbox/native.hpp>

#include "order_loop.hpp"

using Connection = std::unique_ptr<MYSQL, decltype(&mysql_close)>;

// docs/guides/clients/mariadb.md: the service's own functions
void run(MYSQL* db, const std::string& sql) {
  if (mysql_real_query(db, sql.data(), sql.size()) != 0) throw std::runtime_error(mysql_error(db));
}

void book(MYSQL* db, const std::string& order) {
  std::string escaped(2 * order.size() + 1, '\0');
  escaped.resize(mysql_real_escape_string(db, escaped.data(), order.data(), order.size()));
  run(db, "insert into t_order values ('" + escaped + "')");
  crash_if_asked(order);
  run(db, "update t_account set orders = orders + 1");
}

int main(int argc, char** argv) {
  if (argc < 2) throw std::runtime_error("usage: mariadb OPTION_FILE ORDER...");
  // docs/guides/clients/mariadb.md: open and migrate
  const Connection db(mysql_init(nullptr), &mysql_close);
  mysql_options(db.get(), MYSQL_READ_DEFAULT_FILE, argv[1]);
  mysql_options(db.get(), MYSQL_SET_CHARSET_NAME, "utf8mb4");
  if (mysql_real_connect(db.get(), nullptr, nullptr, nullptr, nullptr, 0, nullptr, 0) == nullptr) {
    throw std::runtime_error(mysql_error(db.get()));
  }
  run(db.get(), "set sql_mode = 'STRICT_ALL_TABLES', innodb_lock_wait_timeout = 1");
  txinbox::migrate(db.get());

  // docs/guides/clients/mariadb.md: consume
  txinbox::TxConsumer consumer(db.get(), "order-service");
  return deliver({argv + 2, argv + argc}, [&](const std::string& order) {
    return consumer.consume({.business_key = order}, [&](MYSQL* connection) { book(connection, order); });
  });
}
