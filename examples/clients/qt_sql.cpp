// A service on Qt SQL: an order is booked once, however often it is delivered.
//
// Usage: qt_sql QSQLITE FILE ORDER...
//        qt_sql QPSQL '' ORDER...      (the connection is libpq's default: PGHOST, PGDATABASE, PGUSER, ~/.pgpass)

#include <stdexcept>

#include <QCoreApplication>
#include <QSqlDatabase>
#include <QSqlDriver>
#include <QSqlError>
#include <QSqlQuery>
#include <QVariant>
#include <txinbox/native.hpp>

#include "order_loop.hpp"

// docs/guides/clients/qt-sql.md: the connection behind a QSqlDatabase
txinbox::NativeHandle native(const QSqlDatabase& db) {
  const QVariant handle = db.driver()->handle();
  const std::string type = handle.typeName();
  void* const connection = *static_cast<void* const*>(handle.constData());
  if (type == "PGconn*") return txinbox::NativeHandle(static_cast<pg_conn*>(connection));
  if (type == "MYSQL*") return txinbox::NativeHandle(static_cast<st_mysql*>(connection));
  if (type == "sqlite3*") return txinbox::NativeHandle(static_cast<sqlite3*>(connection));
  throw std::runtime_error("txinbox has no such database: " + type);
}

// docs/guides/clients/qt-sql.md: the service's own functions
struct SqlError : std::runtime_error {
  explicit SqlError(const QSqlError& error) : runtime_error(error.text().toStdString()) {}
};

void book(const QSqlDatabase& db, const std::string& order) {
  QSqlQuery query(db);
  query.prepare("insert into t_order values (?)");
  query.addBindValue(QString::fromStdString(order));
  if (!query.exec()) throw SqlError(query.lastError());
  crash_if_asked(order);
  if (!query.exec("update t_account set orders = orders + 1")) throw SqlError(query.lastError());
}

int main(int argc, char** argv) {
  const QCoreApplication application(argc, argv);
  if (argc < 3) throw std::runtime_error("usage: qt_sql QSQLITE FILE ORDER...");
  // docs/guides/clients/qt-sql.md: open and migrate
  QSqlDatabase db = QSqlDatabase::addDatabase(argv[1]);
  db.setDatabaseName(argv[2]);
  if (!db.open()) throw SqlError(db.lastError());
  txinbox::migrate(native(db));

  // docs/guides/clients/qt-sql.md: consume
  txinbox::TxConsumer consumer(native(db), "order-service");
  return deliver({argv + 3, argv + argc}, [&](const std::string& order) {
    return consumer.consume({.business_key = order}, [&](txinbox::NativeHandle) { book(db, order); });
  });
}
