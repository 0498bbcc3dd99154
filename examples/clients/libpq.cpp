// A service on libpq: an order is booked once, however often it is delivered.
//
// Usage: libpq CONNINFO ORDER...      (the password is in PGPASSWORD or ~/.pgpass)

#include <array>
#include <memory>
#include <stdexcept>

#include <libpq-fe.h>
#include <txinbox/native.hpp>

#include "order_loop.hpp"

// docs/guides/clients/libpq.md: the service's own functions
void run(PGconn* db, const char* sql, const std::string& parameter) {
  const std::array values{parameter.c_str()};
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(
      PQexecParams(db, sql, 1, nullptr, values.data(), nullptr, nullptr, 0), &PQclear);
  if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) throw std::runtime_error(PQresultErrorMessage(result.get()));
}

void book(PGconn* db, const std::string& order) {
  run(db, "insert into t_order values ($1)", order);
  crash_if_asked(order);
  run(db, "insert into t_event values ('booked ' || $1::text)", order);
}

// docs/guides/clients/libpq.md: open
using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;

void set_up(PGconn* db, const char* sql) {
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(db, sql), &PQclear);
  if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) throw std::runtime_error(PQresultErrorMessage(result.get()));
}

Connection connect(const std::string& conninfo) {
  Connection db(PQconnectdb(conninfo.c_str()), &PQfinish);
  if (PQstatus(db.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(db.get()));
  set_up(db.get(), "set client_encoding = 'UTF8'; set lock_timeout = '1s'");
  return db;
}

// docs/guides/clients/libpq.md: consume
class OrderService {
 public:
  explicit OrderService(const std::string& conninfo)
      : db_(connect(conninfo)), consumer_(db_.get(), "order-service", {.listeners = {txinbox::on_event(log_retry)}}) {}

  txinbox::Result consume(const std::string& order) {
    return consumer_.consume({.business_key = order}, [&](PGconn* db) { book(db, order); });
  }

 private:
  Connection db_;  // outlives the consumer
  txinbox::TxConsumer consumer_;
};

int main(int argc, char** argv) {
  if (argc < 2) throw std::runtime_error("usage: libpq CONNINFO ORDER...");
  const std::string conninfo = argv[1];
  {
    // docs/guides/clients/libpq.md: migrate
    const Connection db = connect(conninfo);
    txinbox::migrate(db.get());
    set_up(db.get(), "create table if not exists t_order (no text primary key)");
    set_up(db.get(), "create table if not exists t_event (text text not null)");
  }
  return deliver({argv + 2, argv + argc}, [&] { return std::make_unique<OrderService>(conninfo); });
}
