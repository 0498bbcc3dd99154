// A service on Qt SQL: an order is booked once, however often it is delivered.
//
// Usage: qt_sql URL ORDER...
//   URL  sqlite:FILE, postgresql://USER@HOST:PORT/DATABASE or mysql://USER@HOST:PORT/DATABASE; the password is in the
//        environment variable DB_PASSWORD

#include <memory>
#include <stdexcept>

#include <QCoreApplication>
#include <QSqlDatabase>
#include <QSqlDriver>
#include <QSqlError>
#include <QSqlQuery>
#include <QUrl>
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

void run(const QSqlDatabase& db, const QString& sql) {
  QSqlQuery query(db);
  if (!query.exec(sql)) throw SqlError(query.lastError());
}

void run(const QSqlDatabase& db, const QString& sql, const QString& value) {
  QSqlQuery query(db);
  if (!query.prepare(sql)) throw SqlError(query.lastError());
  query.addBindValue(value);
  if (!query.exec()) throw SqlError(query.lastError());
}

void book(const QSqlDatabase& db, const QString& order) {
  run(db, "insert into t_order values (?)", order);
  crash_if_asked(order.toStdString());
  run(db, "insert into t_event values (?)", "booked " + order);
}

// docs/guides/clients/qt-sql.md: open
QSqlDatabase database_of(const QUrl& url) {
  const bool sqlite = url.scheme() == "sqlite";
  auto db = QSqlDatabase::addDatabase(sqlite ? "QSQLITE" : url.scheme() == "postgresql" ? "QPSQL" : "QMYSQL");
  db.setHostName(url.host());
  db.setPort(url.port());
  db.setUserName(url.userName());
  db.setPassword(qEnvironmentVariable("DB_PASSWORD"));
  db.setDatabaseName(sqlite ? url.path() : url.path().mid(1));
  if (sqlite) db.setConnectOptions("QSQLITE_BUSY_TIMEOUT=1000");
  return db;
}

/// If the database is open, Qt closes it first.
void open(QSqlDatabase& db) {
  if (!db.open()) throw SqlError(db.lastError());
  if (db.driverName() == "QSQLITE") run(db, "pragma synchronous = full");
  if (db.driverName() == "QPSQL") run(db, "set lock_timeout = '1s'");
  if (db.driverName() == "QMYSQL") run(db, "set sql_mode = 'STRICT_ALL_TABLES', innodb_lock_wait_timeout = 1");
}

// docs/guides/clients/qt-sql.md: consume
class OrderService {
 public:
  explicit OrderService(const QSqlDatabase& db)
      : db_(db), consumer_(native(db_), "order-service", {.listeners = {txinbox::on_event(log_retry)}}) {}

  txinbox::Result consume(const std::string& order) {
    return consumer_.consume({.business_key = order},
                             [&](txinbox::NativeHandle) { book(db_, QString::fromStdString(order)); });
  }

 private:
  QSqlDatabase db_;
  txinbox::TxConsumer consumer_;
};

int main(int argc, char** argv) {
  const QCoreApplication application(argc, argv);
  if (argc < 2) throw std::runtime_error("usage: qt_sql URL ORDER...");
  QSqlDatabase db = database_of(QUrl(QString::fromLocal8Bit(argv[1])));
  // docs/guides/clients/qt-sql.md: migrate
  open(db);
  if (db.driverName() == "QSQLITE") run(db, "pragma journal_mode = wal");
  txinbox::migrate(native(db));
  run(db, "create table if not exists t_order (no varchar(100) primary key)");
  run(db, "create table if not exists t_event (text varchar(200) not null)");

  return deliver({argv + 2, argv + argc}, [&] {
    open(db);
    return std::make_unique<OrderService>(db);
  });
}
