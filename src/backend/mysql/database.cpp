#include <errmsg.h>
#include <mysqld_error.h>

#include <fmt/format.h>

#include "backend/connection_string.hpp"
#include "backend/database.hpp"
#include "backend/hidden_values.hpp"
#include "backend/mysql/catalog.hpp"
#include "backend/mysql/dialect.hpp"
#include "backend/mysql/error_meaning.hpp"
#include "backend/mysql/native.hpp"
#include "backend/mysql/session.hpp"
#include "backend/mysql/tls.hpp"
#include "base/url.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

// Error numbers for which one of the two client libraries has no name.
constexpr unsigned er_client_interaction_timeout = 4031;  // MySQL: closed after wait_timeout
constexpr unsigned er_connection_killed = 1927;           // MariaDB
constexpr unsigned er_wsrep_not_ready = 1047;             // Galera: the node is not primary
constexpr unsigned er_error_during_commit = 1180;         // Galera: it was cut off while it committed
constexpr unsigned er_statement_timeout_mariadb = 1969;
constexpr unsigned er_query_timeout_mysql = 3024;
constexpr unsigned er_record_changed = 1020;  // MariaDB: innodb_snapshot_isolation
constexpr unsigned er_read_only_mode = 1836;
constexpr unsigned er_group_replication_rollback = 3101;  // MySQL: certification failed at COMMIT
constexpr unsigned er_lock_nowait = 3572;                 // MySQL; MariaDB says 1205
constexpr unsigned er_table_not_in_engine = 1932;

class MysqlDatabase final : public Database {
 public:
  std::string_view name() const noexcept override { return "mysql"; }

  std::string connection_string(const detail::Url& url, const PoolOptions& options) const override {
    using std::chrono::ceil;
    using std::chrono::seconds;
    std::string string = url.scheme == "soci" ? url.path : std::string();
    const auto connect_timeout = ceil<seconds>(options.connect_timeout).count();
    if (url.scheme == "soci") {
      refuse_weak_tls(string);
    } else {
      add_url(string, url);
    }
    const auto add_default = [&](std::string_view name, auto value) {
      if (string.find(std::string(name) + "=") == std::string::npos)
        append_parameter(string, name, std::to_string(value));
    };
    const auto silence = ceil<seconds>(longest_statement(options)).count();
    add_default("connect_timeout", connect_timeout);
    add_default("read_timeout", silence);
    add_default("write_timeout", silence);
    return string;
  }

  const soci::backend_factory& factory() const noexcept override { return mysql_factory(); }

  std::unique_ptr<soci::session> open(const soci::backend_factory& factory, const std::string& connection_string,
                                      const detail::UrlParameters& parameters) const override {
    try {
      return Database::open(factory, connection_string, parameters);
    } catch (const soci::mysql_soci_error& e) {
      throw soci::mysql_soci_error(without_values(e.what(), parameters), static_cast<int>(e.err_num_));
    }
  }

  std::optional<std::string> refusal(const soci::soci_error& error, const std::string& /*unused*/) const override {
    constexpr unsigned er_must_change_password_login = 1862;
    constexpr unsigned er_account_locked_mysql = 3118;
    constexpr unsigned er_account_locked_mariadb = 4151;
    const auto* e = dynamic_cast<const soci::mysql_soci_error*>(&error);
    if (e == nullptr) return std::nullopt;
    switch (e->err_num_) {
      case ER_ACCESS_DENIED_ERROR:
      case ER_ACCESS_DENIED_NO_PASSWORD_ERROR:
      case ER_DBACCESS_DENIED_ERROR:
      case ER_BAD_DB_ERROR:
      case ER_HOST_NOT_PRIVILEGED:
      case ER_MUST_CHANGE_PASSWORD:
      case er_must_change_password_login:
      case er_account_locked_mysql:
      case er_account_locked_mariadb:
        return fmt::format(
            "the server refuses this user, password or database (mysql {}); check the URL, the password's source and "
            "the user's rights",
            e->err_num_);
      default:
        return std::nullopt;
    }
  }

  std::optional<ErrorClass> classify(const soci::soci_error& error) const noexcept override {
    const auto* e = dynamic_cast<const soci::mysql_soci_error*>(&error);
    if (e == nullptr) return std::nullopt;
    switch (e->err_num_) {
      case ER_DUP_ENTRY:
        return ErrorClass::duplicate_key;
      case ER_LOCK_DEADLOCK:
        return ErrorClass::deadlock;
      case ER_LOCK_WAIT_TIMEOUT:
      case ER_LOCK_ABORTED:  // somebody wants the table for himself
      case er_lock_nowait:
        return ErrorClass::lock_timeout;
      case er_record_changed:
      case er_group_replication_rollback:
      case ER_NEED_REPREPARE:  // a prepared statement is out of date: a new run prepares anew
        return ErrorClass::serialization_failure;
      case ER_QUERY_INTERRUPTED:
      case er_statement_timeout_mariadb:
      case er_query_timeout_mysql:
        return ErrorClass::statement_timeout;
      case ER_OPTION_PREVENTS_STATEMENT:
      case er_read_only_mode:
      case ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION:
        return ErrorClass::read_only;
      case CR_CONNECTION_ERROR:
      case CR_CONN_HOST_ERROR:
      case CR_UNKNOWN_HOST:
      case CR_SERVER_GONE_ERROR:
      case CR_SERVER_LOST:
      case ER_SERVER_SHUTDOWN:
      case ER_CON_COUNT_ERROR:
      case ER_TOO_MANY_USER_CONNECTIONS:
      case er_connection_killed:
      case er_client_interaction_timeout:
      case er_wsrep_not_ready:
      case er_error_during_commit:
      case ER_CANT_CREATE_THREAD:  // for a new connection
      case ER_NET_READ_ERROR:
      case ER_NET_READ_INTERRUPTED:
      case ER_NET_ERROR_ON_WRITE:
      case ER_NET_WRITE_INTERRUPTED:
        return ErrorClass::connection_lost;
      case ER_DISK_FULL:
      case ER_RECORD_FILE_FULL:  // "the table is full"
      case ER_FILSORT_ABORT:
      case ER_GET_ERRNO:  // what the engine got from the system
      case ER_OUTOFMEMORY:
      case ER_OUT_OF_SORTMEMORY:
      case ER_OUT_OF_RESOURCES:
      case CR_OUT_OF_MEMORY:
      case ER_LOCK_TABLE_FULL:
      case ER_USER_LIMIT_REACHED:
      case ER_NO_SUCH_TABLE:
      case er_table_not_in_engine:
      case ER_BAD_DB_ERROR:
      case ER_NO_DB_ERROR:  // the session's default database is gone
        return ErrorClass::environment;
      default:
        return ErrorClass::other;
    }
  }

  std::string code_of(const soci::soci_error& error) const override {
    return std::to_string(static_cast<const soci::mysql_soci_error&>(error).err_num_);
  }

  ErrorDescription describe(const soci::soci_error& error) const override {
    const unsigned code = static_cast<const soci::mysql_soci_error&>(error).err_num_;
    return {.what = "MariaDB/MySQL error", .code = std::to_string(code), .meaning = mysql_meaning(code)};
  }

  // If the connection is lost while rows arrive, the client library forgets the result. SOCI then believes that the
  // statement has no result, and its next fetch would read a null pointer.
  void check_last_statement(soci::session& sql) const override {
    MYSQL* connection = mysql_native(sql);
    if (connection != nullptr && mysql_errno(connection) != 0) throw_mysql_error(connection);
  }

  using Database::attach;
  std::unique_ptr<Session> attach(std::unique_ptr<NativeConnection> connection, Ownership ownership) const override {
    return std::make_unique<MysqlSession>(std::move(connection), ownership);
  }
  std::unique_ptr<NativeConnection> native_connection(soci::session& sql) const override {
    return std::make_unique<SociConnection<mysql_native>>(sql);
  }

  std::unique_ptr<Catalog> catalog(soci::session& sql) const override { return make_mysql_catalog(sql); }

  std::unique_ptr<Dialect> dialect(const std::string& schema) const override { return make_mysql_dialect(schema); }

 private:
  static void add_url(std::string& string, const detail::Url& url) {
    for (const auto& [name, value] : url.parameters) {
      if (name != "unix_socket" && name != "charset" && !is_tls_parameter(name)) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the parameter '{}' of the MySQL URL is not known; unix_socket, sslmode, sslca, "
                                "sslcert, sslkey and charset are",
                                name));
      }
    }
    if (url.path.empty()) {
      throw Error(ErrorCode::invalid_argument, "the MySQL URL names no database; write mysql://user@host:3306/db");
    }
    const MysqlOptionFiles files = read_mysql_option_files();
    const auto add = [&](std::string_view name, std::string_view value) {
      if (!value.empty()) append_parameter(string, name, value);
    };
    add("host", mysql_host(url, files));
    add("port", url.port);
    add("user", url.user);
    add("password", url.password.empty() ? files.password : url.password);
    add("db", url.path);
    for (const auto& [name, value] : url.parameters) {
      if (!is_tls_parameter(name)) add(name, value);
    }
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
