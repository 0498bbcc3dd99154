#include <mysqld_error.h>

#include <utility>

#include "backend/database.hpp"
#include "backend/mysql/catalog.hpp"
#include "backend/mysql/dialect.hpp"
#include "backend/mysql/error_meaning.hpp"
#include "backend/mysql/native.hpp"
#include "backend/mysql/session.hpp"
#include "backend/mysql/user_sql.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

unsigned number_of(const std::string& code) noexcept { return static_cast<unsigned>(number_in(code)); }

#ifdef MARIADB_PACKAGE_VERSION_ID
constexpr unsigned long version_of_build = MARIADB_PACKAGE_VERSION_ID;
#else
constexpr unsigned long version_of_build = MYSQL_VERSION_ID;
#endif

/// Whether a client library with this number is MySQL's. MariaDB's has the number of the server, from 10.0 on, or its
/// own, which is smaller than those of MySQL.
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

  void run(const NativeConnection& connection, const std::string& sql) const override { exec(opened(connection), sql); }

  std::unique_ptr<Dialect> dialect(const std::string& schema) const override { return make_mysql_dialect(schema); }

  const UserSql& user_sql() const noexcept override { return mysql_user_sql(); }

  ScratchSql scratch_sql() const override {
    return {.key_type = "varbinary(255)",
            .table_options = " engine = InnoDB",
            .insert = "insert ignore",
            .unless_exists = "",
            .as_text = "cast({} as char)"};
  }

 private:
  static MYSQL* opened(const NativeConnection& connection) {
    MYSQL* const db = mysql_native(connection);
    if (db == nullptr) throw Error(ErrorCode::unsupported_database, "the session is not connected");
    return db;
  }
};

}  // namespace

// registry.cpp lists it.
extern "C" const Database* txinbox_mysql_database() noexcept {
  static const MysqlDatabase database;
  return &database;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
