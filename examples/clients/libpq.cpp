// A service on libpq: an order is booked once, however often it is delivered.
//
// Usage: libpq ORDER...      (the connection is libpq's default: PGHOST, PGDATABASE, PGUSER, ~/.pgpass)

#include <array>
#include <memory>
#include <stdexcept>

#include <libpq-fe.h>
#include <txinbox/native.hpp>

#include "order_loop.hpp"

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;

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
  run(db, "update t_account set orders = orders + 1 where name <> $1", "closed");
}

int main(int argc, char** argv) {
  // docs/guides/clients/libpq.md: open and migrate
  const Connection db(PQconnectdb(""), &PQfinish);
  if (PQstatus(db.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(db.get()));
  txinbox::migrate(db.get());

  // docs/guides/clients/libpq.md: consume
  txinbox::TxConsumer consumer(db.get(), "order-service");
  return deliver({argv + 1, argv + argc}, [&](const std::string& order) {
    return consumer.consume({.business_key = order}, [&](PGconn* connection) { book(connection, order); });
  });
}
