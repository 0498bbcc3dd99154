// A service on libpqxx, version 6 or 7: an order is booked once, however often it is delivered.
//
// Usage: libpqxx ORDER...      (the connection is libpq's default: PGHOST, PGDATABASE, PGUSER, ~/.pgpass)

#include <stdexcept>
#include <utility>

#include <libpq-fe.h>
#include <pqxx/pqxx>
#include <txinbox/native.hpp>

#include "order_loop.hpp"

#if PQXX_VERSION_MAJOR >= 7
// docs/guides/clients/libpqxx.md: version 7
using Connection = pqxx::connection;

Connection adopt(PGconn* db) { return pqxx::connection::seize_raw_connection(db); }
#else
// docs/guides/clients/libpqxx.md: version 6
/// Gives libpqxx, once, a connection that is already open. libpqxx closes it.
class Opened : public pqxx::connectionpolicy {
 public:
  explicit Opened(PGconn* db) : connectionpolicy(""), db_(db) {}
  handle do_startconnect(handle orig) override { return orig == nullptr ? std::exchange(db_, nullptr) : orig; }

 private:
  PGconn* db_;
};

class Connection : public pqxx::connection_base {
 public:
  explicit Connection(PGconn* db) : connection_base(policy_), policy_(db) { init(); }
  ~Connection() { close(); }

 private:
  Opened policy_;
};

Connection adopt(PGconn* db) { return Connection(db); }
#endif

// docs/guides/clients/libpqxx.md: the service's own function
void book(Connection& db, const std::string& order) {
  pqxx::nontransaction sql(db);
  sql.exec_params("insert into t_order values ($1)", order);
  crash_if_asked(order);
  sql.exec_params("update t_account set orders = orders + 1 where name <> $1", "closed");
}

int main(int argc, char** argv) {
  // docs/guides/clients/libpqxx.md: open and migrate
  PGconn* const native = PQconnectdb("");
  if (PQstatus(native) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(native));
  Connection db = adopt(native);
  txinbox::migrate(native);

  // docs/guides/clients/libpqxx.md: consume
  txinbox::TxConsumer consumer(native, "order-service");
  return deliver({argv + 1, argv + argc}, [&](const std::string& order) {
    return consumer.consume({.business_key = order}, [&](PGconn*) { book(db, order); });
  });
}
