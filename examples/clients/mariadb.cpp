// A service on the client library of MariaDB or MySQL: an order is booked once, however often it is delivered.
//
// Usage: mariadb OPTION_FILE ORDER...      (the file's group [client] has host, user, password, database)

#include <memory>
#include <stdexcept>

#include <mysql.h>
#include <txinbox/native.hpp>

#include "order_loop.hpp"

// docs/guides/clients/mariadb.md: the service's own functions
void run(MYSQL* db, const std::string& sql) {
  if (mysql_real_query(db, sql.data(), sql.size()) != 0) throw std::runtime_error(mysql_error(db));
}

void book(MYSQL* db, const std::string& order) {
  std::string escaped(2 * order.size() + 1, '\0');
  escaped.resize(mysql_real_escape_string(db, escaped.data(), order.data(), order.size()));
  run(db, "insert into t_order values ('" + escaped + "')");
  crash_if_asked(order);
  run(db, "insert into t_event values ('booked " + escaped + "')");
}

// docs/guides/clients/mariadb.md: open
using Connection = std::unique_ptr<MYSQL, decltype(&mysql_close)>;

Connection connect(const char* option_file) {
  Connection db(mysql_init(nullptr), &mysql_close);
  mysql_options(db.get(), MYSQL_READ_DEFAULT_FILE, option_file);
  mysql_options(db.get(), MYSQL_SET_CHARSET_NAME, "utf8mb4");
  if (mysql_real_connect(db.get(), nullptr, nullptr, nullptr, nullptr, 0, nullptr, 0) == nullptr) {
    throw std::runtime_error(mysql_error(db.get()));
  }
  run(db.get(), "set sql_mode = 'STRICT_ALL_TABLES', innodb_lock_wait_timeout = 1");
  return db;
}

// docs/guides/clients/mariadb.md: consume
class OrderService {
 public:
  explicit OrderService(const char* option_file)
      : db_(connect(option_file)),
        consumer_(db_.get(), "order-service", {.listeners = {txinbox::on_event(log_retry)}}) {}

  txinbox::Result consume(const std::string& order) {
    return consumer_.consume({.business_key = order}, [&](MYSQL* db) { book(db, order); });
  }

 private:
  Connection db_;  // outlives the consumer
  txinbox::TxConsumer consumer_;
};

int main(int argc, char** argv) {
  if (argc < 2) throw std::runtime_error("usage: mariadb OPTION_FILE ORDER...");
  const char* option_file = argv[1];
  {
    // docs/guides/clients/mariadb.md: migrate
    const Connection db = connect(option_file);
    txinbox::migrate(db.get());
    run(db.get(), "create table if not exists t_order (no varchar(100) primary key)");
    run(db.get(), "create table if not exists t_event (text varchar(200) not null)");
  }
  return deliver({argv + 2, argv + argc}, [&] { return std::make_unique<OrderService>(option_file); });
}
