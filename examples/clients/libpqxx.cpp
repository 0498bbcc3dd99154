// A service on libpqxx, version 6 or 7: an order is booked once, however often it is delivered.
//
// Usage: libpqxx CONNINFO ORDER...      (the password is in PGPASSWORD or ~/.pgpass)

#include <memory>
#include <stdexcept>
#include <utility>

#include <libpq-fe.h>
#include <pqxx/pqxx>
#include <txinbox/native.hpp>

#include "order_loop.hpp"

#if PQXX_VERSION_MAJOR >= 7
// docs/guides/clients/libpqxx.md: version 7
using PqxxConnection = pqxx::connection;

/// Lends libpqxx a connection. The service closes it.
class Lent {
 public:
  explicit Lent(PGconn* db) : connection_(pqxx::connection::seize_raw_connection(db)) {}
  ~Lent() { static_cast<void>(std::move(connection_).release_raw_connection()); }
  PqxxConnection& get() { return connection_; }

 private:
  PqxxConnection connection_;
};
#else
// docs/guides/clients/libpqxx.md: version 6
using PqxxConnection = pqxx::connection_base;

/// Lends libpqxx a connection. The service closes it: libpqxx neither connects nor disconnects.
class LendingPolicy : public pqxx::connectionpolicy {
 public:
  explicit LendingPolicy(PGconn* db) : connectionpolicy(""), db_(db) {}
  handle do_startconnect(handle) override { return db_; }
  handle do_dropconnect(handle) noexcept override { return nullptr; }
  handle do_disconnect(handle) noexcept override { return nullptr; }

 private:
  PGconn* db_;
};

class Lent : private PqxxConnection {
 public:
  explicit Lent(PGconn* db) : connection_base(policy_), policy_(db) { init(); }
  ~Lent() { close(); }
  PqxxConnection& get() { return *this; }

 private:
  LendingPolicy policy_;
};
#endif

// docs/guides/clients/libpqxx.md: the service's own function
void book(PqxxConnection& db, const std::string& order) {
  pqxx::nontransaction sql(db);
  sql.exec_params("insert into t_order values ($1)", order);
  crash_if_asked(order);
  sql.exec_params("insert into t_event values ('booked ' || $1::text)", order);
}

// docs/guides/clients/libpqxx.md: open
using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;

Connection connect(const std::string& conninfo) {
  Connection db(PQconnectdb(conninfo.c_str()), &PQfinish);
  if (PQstatus(db.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(db.get()));
  return db;
}

// docs/guides/clients/libpqxx.md: consume
class OrderService {
 public:
  explicit OrderService(const std::string& conninfo)
      : db_(connect(conninfo)),
        pqxx_(db_.get()),
        consumer_(db_.get(), "order-service", {.listeners = {txinbox::on_event(log_retry)}}) {
    pqxx::nontransaction sql(pqxx_.get());
    sql.exec("set client_encoding = 'UTF8'");
    sql.exec("set lock_timeout = '1s'");
  }

  txinbox::Result consume(const std::string& order) {
    return consumer_.consume({.business_key = order}, [&](PGconn*) { book(pqxx_.get(), order); });
  }

 private:
  Connection db_;  // outlives libpqxx's object and the consumer
  Lent pqxx_;
  txinbox::TxConsumer consumer_;
};

int main(int argc, char** argv) {
  if (argc < 2) throw std::runtime_error("usage: libpqxx CONNINFO ORDER...");
  const std::string conninfo = argv[1];
  {
    // docs/guides/clients/libpqxx.md: migrate
    const Connection db = connect(conninfo);
    txinbox::migrate(db.get());
    Lent lent(db.get());
    pqxx::work sql(lent.get());
    sql.exec("create table if not exists t_order (no text primary key)");
    sql.exec("create table if not exists t_event (text text not null)");
    sql.commit();
  }
  return deliver({argv + 2, argv + argc}, [&] { return std::make_unique<OrderService>(conninfo); });
}
