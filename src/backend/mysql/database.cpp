#include <mysqld_error.h>

#include <array>
#include <utility>

#include "backend/database.hpp"
#include "backend/mysql/native.hpp"
#include "backend/mysql/parts.hpp"
#include "backend/mysql/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

using enum ErrorClass;

/// The codes are numbers here, because each of the two client libraries lacks some of the names.
constexpr auto meanings = std::to_array<ErrorCodeMeaning<unsigned>>({
    {1020U, {serialization_failure}},  // ER_CHECKREAD; only MariaDB with innodb_snapshot_isolation
    {1021U, {environment, "the disk is full"}},
    {1028U, {environment, "a sort was ended"}},
    {1030U, {environment, "the storage engine got an error from the system"}},
    {1037U, {environment, "no memory"}},
    {1038U, {environment, "no memory to sort"}},
    {1040U, {connection_lost, "too many connections"}},
    {1041U, {environment, "no memory"}},
    {1044U, {other, "access to the database denied"}},
    {1045U, {other, "access denied"}},
    {1046U, {environment, "the session's database is gone"}},
    {1047U, {connection_lost, "a Galera node that is parted from its cluster"}},
    {1048U, {other, "NULL in a NOT NULL column"}},
    {1049U, {environment, "no such database"}},
    {1053U, {connection_lost}},  // ER_SERVER_SHUTDOWN
    {1054U, {other, "no such column"}},
    {1062U, {duplicate_key, "duplicate key"}},
    {1064U, {other, "wrong SQL"}},
    {1114U, {environment, "the table is full"}},
    {1129U, {connection_lost, "the server blocks this host after too many failed connections"}},
    {1135U, {connection_lost, "the server cannot start a thread"}},  // the error of a new connection
    {1142U, {other, "no privilege on the table"}},
    {1146U, {environment, "no such table"}},
    {1158U, {connection_lost, "the connection is lost"}},
    {1159U, {connection_lost, "the connection is lost"}},
    {1160U, {connection_lost, "the connection is lost"}},
    {1161U, {connection_lost, "the connection is lost"}},
    {1180U, {connection_lost, "it failed while it committed"}},  // Galera: the node left the cluster during the commit
    {1203U, {connection_lost, "too many connections of this user"}},
    {1205U, {lock_timeout, "lock wait timeout"}},
    {1206U, {environment, "no memory for more locks"}},
    {1213U, {deadlock, "deadlock"}},
    {1226U, {environment, "a limit of this user"}},
    {1264U, {other, "a number out of range"}},
    {1290U, {read_only, "the server is read-only"}},
    {1292U, {other, "a value of the wrong form"}},
    {1317U, {statement_timeout}},  // ER_QUERY_INTERRUPTED
    {1364U, {other, "a column without a value"}},
    {1366U, {other, "a value of the wrong form"}},
    {1406U, {other, "a value too long for its column"}},
    {1412U, {serialization_failure}},  // ER_TABLE_DEF_CHANGED: a table is newer than the transaction's snapshot
    {1451U, {other, "a foreign key"}},
    {1452U, {other, "a foreign key"}},
    {1461U, {environment, "too many prepared statements on the server"}},
    {1615U, {serialization_failure, "a prepared statement is out of date"}},  // a new run prepares it again
    {1637U, {environment, "too many transactions on the server"}},
    {1689U, {lock_timeout, "the wait for a lock was ended"}},  // another session wants to lock the table
    {1690U, {other, "a number out of range"}},
    {1792U, {read_only, "a read-only transaction, as on a replica"}},
    {1836U, {read_only, "the server is read-only"}},
    {1878U, {environment, "a temporary file could not be written"}},
    {1927U, {connection_lost}},  // ER_CONNECTION_KILLED of MariaDB
    {1932U, {environment, "the table's data is gone"}},
    {1969U, {statement_timeout}},  // ER_STATEMENT_TIMEOUT of MariaDB
    {2002U, {connection_lost, "cannot connect"}},
    {2003U, {connection_lost, "cannot connect"}},
    {2005U, {connection_lost, "unknown host"}},
    {2006U, {connection_lost, "the connection is lost"}},
    {2008U, {environment, "no memory"}},
    {2013U, {connection_lost, "the connection is lost"}},
    {3024U, {statement_timeout}},  // ER_QUERY_TIMEOUT of MySQL
    {3058U, {deadlock, "a deadlock of GET_LOCK"}},
    {3100U, {environment, "a replication plugin refused the commit"}},
    {3101U, {serialization_failure}},                      // MySQL: certification failed at COMMIT
    {3572U, {lock_timeout, "a lock is held by another"}},  // MySQL; MariaDB says 1205
    {3819U, {other, "a CHECK constraint"}},
    {4025U, {other, "a CHECK constraint"}},
    {4031U, {connection_lost}},  // MySQL: closed after wait_timeout
});

/// Returns the meaning of a code. A code that is not listed is `ErrorClass::other`, without a text.
ErrorMeaning mysql_meaning(unsigned code) {
  const auto* const found = find_meaning(meanings, [code](unsigned each) { return each == code; });
  return found == nullptr ? ErrorMeaning() : *found;
}

unsigned number_of(const std::string& code) noexcept { return static_cast<unsigned>(number_in(code)); }

#ifdef MARIADB_PACKAGE_VERSION_ID
constexpr unsigned long version_of_build = MARIADB_PACKAGE_VERSION_ID;
#else
constexpr unsigned long version_of_build = MYSQL_VERSION_ID;
#endif

/// Whether a client library with this version number is MySQL's. MariaDB's library has the number of its server, which
/// is 10.0 or greater, or a number of its own, which is smaller than MySQL's numbers.
constexpr bool is_of_mysql(unsigned long version) noexcept { return version >= 50000 && version < 100000; }

class MysqlDatabase final : public Database {
 public:
  std::string_view name() const noexcept override { return mysql_name; }

  ErrorMeaning meaning_of(const std::string& code) const noexcept override { return mysql_meaning(number_of(code)); }

  ErrorDescription describe(const std::string& code) const override {
    return {.what = "MariaDB/MySQL error", .code = code, .meaning = mysql_meaning(number_of(code)).text};
  }

  std::unique_ptr<Session> attach(ConnectionPtr connection, Ownership ownership) const override {
    return std::make_unique<MysqlSession>(std::move(connection), ownership);
  }

  std::unique_ptr<Catalog> catalog(ConnectionPtr connection) const override {
    return make_mysql_catalog(std::move(connection));
  }

  void refuse_unopened(void* handle) const override {
    auto* const db = static_cast<MYSQL*>(handle);
    if (is_of_mysql(mysql_get_client_version()) != is_of_mysql(version_of_build)) {
      throw Error(
          ErrorCode::unsupported_database,
          "txinbox was built with MariaDB's client library and runs with MySQL's, or the other way round; build "
          "the program and txinbox with the same one");
    }
    if (mysql_thread_id(db) == 0 || mysql_get_server_info(db) == nullptr) {
      throw Error(ErrorCode::invalid_argument,
                  "the connection to MariaDB or MySQL is not open; call mysql_real_connect first");
    }
  }

  void refuse_unusable(const NativeConnection& connection) const override {
    MYSQL* const db = mysql_native(connection);
    if (db == nullptr || db->status == MYSQL_STATUS_READY) return;
    throw Error(ErrorCode::unsafe_connection,
                "a result on the connection to MariaDB or MySQL is not read to its end; read it with "
                "mysql_store_result, or mysql_fetch_row until null, and free it before the next message");
  }

  std::vector<Row> query(const NativeConnection& connection, const std::string& sql, std::size_t) const override {
    return query_rows(opened(connection), sql);
  }

  std::size_t run(const NativeConnection& connection, const std::string& sql) const override {
    MYSQL* db = opened(connection);
    exec(db, sql);
    return static_cast<std::size_t>(mysql_affected_rows(db));
  }

  std::unique_ptr<Dialect> dialect(const std::string& schema) const override { return make_mysql_dialect(schema); }

 private:
  static MYSQL* opened(const NativeConnection& connection) {
    MYSQL* const db = mysql_native(connection);
    if (db == nullptr) throw Error(ErrorCode::unsupported_database, "the session is not connected");
    return db;
  }
};

}  // namespace

// registry.hpp lists it.
extern "C" const Database* txinbox_mysql_database() noexcept {
  static const MysqlDatabase database;
  return &database;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
