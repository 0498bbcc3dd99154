#include "backend/mysql/parts.hpp"

#include <fmt/format.h>
#include <mysqld_error.h>

#include <chrono>
#include <optional>
#include <utility>

#include "backend/database.hpp"
#include "backend/mysql/flavour.hpp"
#include "backend/mysql/native.hpp"
#include "backend/peer.hpp"
#include "backend/query.hpp"
#include "backend/script.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

/// The name of the lock. It contains the database's name, because all databases of a server share one set of locks.
constexpr auto lock_name = "CONCAT('txinbox ', LEFT(SHA2(DATABASE(), 256), 40))";

class MysqlCatalog final : public Catalog {
 public:
  explicit MysqlCatalog(ConnectionPtr connection) : shared_(std::move(connection)), sql_(*shared_) {}

  /// In Vitess, a query of information_schema runs on a shard, where the database has another name. No client can use
  /// that name, so such a query asks for DATABASE(). vtgate answers SELECT DATABASE() itself. On a connection to one
  /// shard, such as orders:-80, it also names the shard, which a statement cannot do.
  std::string find_schema(std::string_view table) override {
    const std::string on_shard =
        query_text(sql_, fmt::format("SELECT TABLE_SCHEMA FROM information_schema.TABLES WHERE TABLE_SCHEMA = "
                                     "DATABASE() AND TABLE_NAME = '{}'",
                                     table));
    if (on_shard.empty()) return {};
    const std::string found = query_text(sql_, "SELECT DATABASE()");
    return found == on_shard ? found : found.substr(0, found.find(':'));
  }

  std::vector<Problem> check_tables(const std::string& /*schema*/) override { return check_mysql_tables(sql_); }

  /// The server lists a table only for a user with a privilege on it. It answers a SELECT of a user without one with a
  /// denial, whether the table exists or not.
  bool may_hide(const std::string& schema, std::string_view table) override {
    try {
      sql_.database().run(
          sql_, fmt::format("SELECT 1 FROM {}.{} LIMIT 0", quoted_identifier(schema), quoted_identifier(table)));
    } catch (const DatabaseError& error) {
      if (mysql_number(error) == ER_NO_SUCH_TABLE) return false;
      if (mysql_number(error) != ER_TABLEACCESS_DENIED_ERROR) throw;
    }
    return true;
  }

  std::vector<Finding> check_server() override { return check_mysql_server(sql_); }

  /// Only a user with the privilege PROCESS sees the sessions of others.
  std::optional<LogReader> find_log_reader(const std::string& /*schema*/) override {
    const auto sessions = flavour().sessions;
    if (sessions.empty()) return std::nullopt;
    try {
      const auto rows =
          query(sql_, fmt::format("SELECT USER, HOST FROM {} WHERE COMMAND LIKE 'Binlog Dump%' LIMIT 1", sessions), 2);
      if (rows.empty()) return std::nullopt;
      return LogReader{
          fmt::format("{}@{} (a client of the binary log)", rows[0][0].value_or(""), rows[0][1].value_or("")), true};
    } catch (const DatabaseError& error) {
      if (mysql_number(error) != ER_NO_SUCH_TABLE && mysql_number(error) != ER_TABLEACCESS_DENIED_ERROR) throw;
      return std::nullopt;
    }
  }

  std::vector<std::string> shards() override { return mysql_shards(sql_); }
  std::string database_of_shard() override { return database_of_mysql_shard(sql_); }
  std::vector<Problem> check_claims() override { return check_claims_in_shards(sql_); }

  std::string server_version() override { return query_text(sql_, "SELECT VERSION()"); }

  std::vector<Row> read(const std::string& text, std::size_t columns) override { return query(sql_, text, columns); }

  Transport transport() override {
    MYSQL* connection = mysql_native(sql_);
    return {reaches_beyond_host(static_cast<int>(mysql_get_socket(connection))), mysql_encryption(connection)};
  }

  std::int64_t table_bytes(const std::string& /*schema*/) override {
    return number_in(query_text(sql_, fmt::format("SELECT DATA_LENGTH + INDEX_LENGTH FROM information_schema.TABLES "
                                                  "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '{}'",
                                                  consumed_message_table)));
  }

  TableEstimate estimate(const std::string& /*schema*/) override {
    const auto rows = query(sql_,
                            fmt::format("SELECT TABLE_ROWS, DATA_LENGTH + INDEX_LENGTH FROM information_schema.TABLES "
                                        "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '{}'",
                                        consumed_message_table),
                            2);
    TableEstimate found;
    if (!rows.empty() && rows[0][0]) found.rows = number_in(*rows[0][0]);
    if (!rows.empty() && rows[0][1]) found.bytes = number_in(*rows[0][1]);
    return found;
  }

  bool has_lease_index(const std::string& /*schema*/) override {
    return !query(
                sql_,
                fmt::format("SELECT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() AND "
                            "TABLE_NAME = '{}' AND INDEX_NAME = '{}'",
                            consumed_message_table, lease_index),
                1)
                .empty();
  }

  void begin_migrations() override {
    using namespace std::chrono_literals;
    // Without a default database there is nothing to lock. The first statement of the migration then fails with the
    // server's code.
    if (query_text(sql_, "SELECT DATABASE()").empty()) return;
    // Wait in short steps, because the time-outs of statements and reads count the wait.
    const auto give_up = std::chrono::steady_clock::now() + 1min;
    while (query_text(sql_, fmt::format("SELECT GET_LOCK({}, 1)", lock_name)) != "1") {
      if (std::chrono::steady_clock::now() > give_up) {
        throw_mysql_error(mysql_native(sql_), ER_LOCK_WAIT_TIMEOUT,
                          "another process has been migrating this database for a minute");
      }
    }
    lift_statement_limit();
  }

  /// The lock holds on one server only. Two nodes of a Galera cluster can apply a migration at the same time. One of
  /// them then gets a deadlock and tries again, without the statements whose result exists by then.
  void apply(std::string_view sql) override {
    constexpr int tries = 10;
    const std::string sql_mode = quoted(query_text(sql_, "SELECT @@sql_mode"));
    for (int left = tries - 1;; --left) {
      try {
        return run_migration(sql);
      } catch (const DatabaseError& error) {
        try_exec(mysql_native(sql_), "SET sql_mode = " + sql_mode);  // V1__inbox.sql changes it temporarily
        if (mysql_number(error) != ER_LOCK_DEADLOCK || left == 0) throw;
      }
    }
  }

  void end_migrations() override {
    exec(mysql_native(sql_), "COMMIT");  // commits if the session's autocommit is off
    restore_statement_limit();
    release();
  }

  void abandon_migrations() noexcept override {
    try {
      exec(mysql_native(sql_), "ROLLBACK");
      restore_statement_limit();
      release();
    } catch (const std::exception&) {
      // If this fails, the server releases the lock at the end of the connection.
    }
  }

 private:
  Flavour flavour() const { return flavour_of(parse_server_version(mysql_get_server_info(mysql_native(sql_)))); }

  /// OceanBase has no character set for ASCII. The columns that have it contain words of ours.
  static void replace_ascii(std::string& statement) {
    constexpr std::string_view ascii = "CHARACTER SET ascii COLLATE ascii_bin";
    for (std::size_t at = 0; (at = statement.find(ascii)) != std::string::npos;) {
      statement.replace(at, ascii.size(), "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
    }
  }

  /// V1 creates procedures. Only MySQL itself uses them: Vitess reads its comments for MySQL, and has no procedures.
  ///
  /// MySQL before 8.0.29 does not accept IF NOT EXISTS for a procedure. An interrupted V1 may already have created the
  /// procedure. To drop it first would remove the service's privileges on it.
  ///
  /// MySQL has no IF NOT EXISTS for an index, either. V4 reads whether its index exists. Another node of a Galera
  /// cluster can create the index after that.
  void run_migration(std::string_view sql) {
    const bool has_procedures = flavour().procedures;
    const bool has_ascii = flavour().has_all_variables || !query(sql_, "SHOW CHARACTER SET LIKE 'ascii'", 1).empty();
    for (std::string& statement : statements_of(sql)) {
      if (!has_procedures && statement.find("CREATE PROCEDURE") != std::string::npos) continue;
      if (!has_ascii) replace_ascii(statement);
      try {
        sql_.database().run(sql_, statement);
      } catch (const DatabaseError& error) {
        const unsigned number = mysql_number(error);
        if (number != ER_SP_ALREADY_EXISTS && number != ER_DUP_KEYNAME) throw;
      }
    }
  }

  /// A migration can copy a table, which can take hours. MariaDB would end it after max_statement_time. MySQL's limit
  /// ends only SELECT statements.
  void lift_statement_limit() {
    MYSQL* connection = mysql_native(sql_);
    const std::string_view name = flavour().statement_seconds;
    if (name.empty()) return;
    limit_before_ = fmt::format("{} = {}", name, query_text(sql_, fmt::format("SELECT @@{}", name)));
    exec(connection, fmt::format("SET {} = 0", name));
  }

  void restore_statement_limit() {
    if (limit_before_.empty()) return;
    exec(mysql_native(sql_), "SET " + limit_before_);
    limit_before_.clear();
  }

  void release() { query_text(sql_, fmt::format("SELECT RELEASE_LOCK({})", lock_name)); }

  const ConnectionPtr shared_;
  const NativeConnection& sql_;
  std::string limit_before_;  // empty: the limit was not changed
};

}  // namespace

bool is_strict(std::string_view sql_mode) {
  return sql_mode.find("STRICT_TRANS_TABLES") != std::string_view::npos ||
         sql_mode.find("STRICT_ALL_TABLES") != std::string_view::npos;
}

std::unique_ptr<Catalog> make_mysql_catalog(ConnectionPtr connection) {
  return std::make_unique<MysqlCatalog>(std::move(connection));
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
