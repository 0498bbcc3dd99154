#include "support/native_log_reader.hpp"

#include <libpq-fe.h>
#include <mysql.h>

#include <mariadb_rpl.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "base/url.hpp"

namespace txinbox::test {
namespace {

using PostgresqlConnection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using MysqlConnection = std::unique_ptr<MYSQL, decltype(&mysql_close)>;

std::string slot_name(const TestDatabase& db) { return db.text("select current_schema()") + "_slot"; }

PostgresqlConnection read_slot(const std::string& url, const std::string& name) {
  PostgresqlConnection pg(PQconnectdb((url + "&replication=database").c_str()), &PQfinish);
  const std::string start =
      "START_REPLICATION SLOT " + name + " LOGICAL 0/0 (proto_version '1', publication_names '" + name + "')";
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(pg.get(), start.c_str()), &PQclear);
  if (PQresultStatus(result.get()) != PGRES_COPY_BOTH) throw std::runtime_error(PQerrorMessage(pg.get()));
  return pg;
}

MysqlConnection read_binary_log(const std::string& text) {
  const detail::Url url = detail::parse_url(text);
  MysqlConnection db(mysql_init(nullptr), &mysql_close);
  if (mysql_real_connect(db.get(), url.host.c_str(), url.user.c_str(), url.password.c_str(), "",
                         static_cast<unsigned>(std::stoi(url.port)), nullptr, 0) == nullptr ||
      mysql_query(db.get(), "SET @master_binlog_checksum = 'NONE', @source_binlog_checksum = 'NONE'") != 0) {
    throw std::runtime_error(mysql_error(db.get()));
  }
  const std::unique_ptr<MARIADB_RPL, decltype(&mariadb_rpl_close)> reader(mariadb_rpl_init(db.get()),
                                                                          &mariadb_rpl_close);
  constexpr unsigned long first_event = 4;
  constexpr unsigned number_of_this_replica = 4711;
  mariadb_rpl_optionsv(reader.get(), MARIADB_RPL_START, first_event);
  mariadb_rpl_optionsv(reader.get(), MARIADB_RPL_SERVER_ID, number_of_this_replica);
  if (mariadb_rpl_open(reader.get()) != 0) throw std::runtime_error(mysql_error(db.get()));
  return db;
}

}  // namespace

LogReader::LogReader(const TestDatabase& db, const std::string& table)
    : db_(db), name_(on_postgresql() ? slot_name(db) : "") {
  if (on_postgresql()) {
    db.run("create publication " + name_ + " for table " + table);
    db.run("select pg_create_logical_replication_slot('" + name_ + "', 'pgoutput')");
    std::shared_ptr<PGconn> connection(read_slot(db.url(), name_));
    disconnect_ = [connection]() mutable { connection.reset(); };
  } else {
    const std::shared_ptr<MYSQL> connection(read_binary_log(db.url()));
    const std::string id = std::to_string(mysql_thread_id(connection.get()));
    // The server notices only at the next event that its client is gone.
    disconnect_ = [connection, id, &db] { db.run("kill " + id); };
  }
}

void LogReader::disconnect() { std::exchange(disconnect_, nullptr)(); }

LogReader::~LogReader() {
  if (disconnect_) disconnect();
  if (!on_postgresql()) return;
  // The server ends the connection's process a little later.
  db_.run("select pg_terminate_backend(active_pid, 60000) from pg_replication_slots where slot_name = '" + name_ +
          "' and active");
  db_.run("select pg_drop_replication_slot('" + name_ + "')");
  db_.run("drop publication " + name_);
}

}  // namespace txinbox::test
