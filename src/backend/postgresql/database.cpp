#include <array>
#include <memory>
#include <utility>

#include "backend/database.hpp"
#include "backend/postgresql/parts.hpp"
#include "backend/postgresql/result_watch.hpp"
#include "backend/postgresql/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

using enum ErrorClass;

/// SQLSTATEs, then the first two characters of SQLSTATEs with the same meaning. The first entry that fits is used.
constexpr auto meanings = std::to_array<ErrorCodeMeaning<std::string_view>>({
    {"22001", {other, "a value too long for its column"}},
    {"22003", {other, "a number out of range"}},
    {"22007", {other, "a date or time of the wrong form"}},
    {"22P02", {other, "a value of the wrong form"}},
    {"23502", {other, "NULL in a NOT NULL column"}},
    {"23503", {other, "a foreign key"}},
    {"23505", {duplicate_key, "duplicate key"}},
    {"23514", {other, "a CHECK constraint"}},
    {"25006", {read_only, "the server is read-only"}},
    {"25P03", {connection_lost}},  // idle_in_transaction_session_timeout
    {"25P04", {connection_lost}},  // transaction_timeout
    // A pooler or a DEALLOCATE has removed a prepared statement. The next run prepares it again.
    {"26000", {serialization_failure}},
    {"28000", {other, "access denied"}},
    {"28P01", {other, "wrong password"}},
    {"3D000", {other, "no such database"}},
    {"40001", {serialization_failure, "serialization failure"}},
    {"40003", {connection_lost, "nobody knows whether the statement took effect"}},
    {"40P01", {deadlock, "deadlock"}},
    {"42501", {other, "no privilege"}},
    {"42601", {other, "wrong SQL"}},
    {"42703", {other, "no such column"}},
    {"42804", {other, "a value of the wrong type"}},
    {"42883", {other, "no such function or operator"}},
    {"42P01", {environment, "no such table"}},
    {"53000", {environment, "no resources"}},
    {"53100", {environment, "the disk is full"}},
    {"53200", {environment, "no memory"}},
    {"53300", {connection_lost, "too many connections"}},
    {"53400", {environment, "a limit of the configuration"}},
    {"55P03", {lock_timeout, "lock wait timeout"}},
    {"57014", {statement_timeout, "canceled or timed out"}},
    {"57P01", {connection_lost, "the server shut the connection down"}},
    {"57P02", {connection_lost}},  // crash_shutdown
    {"57P03", {connection_lost}},  // cannot_connect_now
    {"57P04", {connection_lost, "the database was dropped"}},
    {"57P05", {connection_lost}},  // idle_session_timeout
    {"58030", {environment, "disk I/O"}},
    {"58P01", {environment, "a file is missing"}},
    {"TXI01", {commit_refused}},  // raised by the trigger of V1__inbox.sql
    {"XX001", {environment, "the data is corrupt"}},
    {"XX002", {environment, "an index is corrupt"}},
    // These entries are whole classes.
    {"08", {connection_lost, "no connection"}},
    {"40", {serialization_failure, "the server rolled the transaction back"}},
    {"53", {environment}},
    {"57", {environment, "an operator intervened"}},
    {"58", {environment, "the server's system"}},
    {"XX", {environment, "an internal error of the server"}},
});

/// Returns the meaning of a code. A code that is not listed is `ErrorClass::other`, without a text.
ErrorMeaning postgresql_meaning(std::string_view sqlstate) {
  const auto* const found =
      find_meaning(meanings, [sqlstate](std::string_view each) { return sqlstate.starts_with(each); });
  return found == nullptr ? ErrorMeaning() : *found;
}

class PostgresqlDatabase final : public Database {
 public:
  std::string_view name() const noexcept override { return postgresql_name; }

  ErrorMeaning meaning_of(const std::string& code) const noexcept override { return postgresql_meaning(code); }

  ErrorDescription describe(const std::string& code) const override {
    if (code.find_first_not_of(' ') == std::string::npos) return {.what = "PostgreSQL error without a code"};
    return {.what = "PostgreSQL SQLSTATE", .code = code, .meaning = postgresql_meaning(code).text};
  }

  std::unique_ptr<Session> attach(ConnectionPtr connection, Ownership ownership) const override {
    return std::make_unique<PostgresqlSession>(std::move(connection), ownership);
  }

  std::unique_ptr<Catalog> catalog(ConnectionPtr connection) const override {
    return make_postgresql_catalog(std::move(connection));
  }

  void refuse_unopened(void* handle) const override {
    if (PQstatus(static_cast<PGconn*>(handle)) == CONNECTION_OK) return;
    throw Error(ErrorCode::invalid_argument,
                "the connection to PostgreSQL is not open; call PQconnectdb, and see PQerrorMessage");
  }

  void refuse_unusable(const NativeConnection& connection) const override {
    const PGconn* const pg = postgresql_native(connection);
    if (pg == nullptr) return;
    if (PQpipelineStatus(pg) != PQ_PIPELINE_OFF) {
      throw Error(ErrorCode::unsafe_connection,
                  "the connection to PostgreSQL is in pipeline mode; read all results and call PQexitPipelineMode "
                  "before the next message");
    }
    if (PQtransactionStatus(pg) == PQTRANS_ACTIVE) {
      throw Error(ErrorCode::unsafe_connection,
                  "a statement on the connection to PostgreSQL still runs, or its results are not read; call "
                  "PQgetResult until null before the next message");
    }
  }

  std::vector<Row> query(const NativeConnection& connection, const std::string& sql,
                         std::size_t columns) const override {
    return postgresql_query(opened(connection), sql, columns);
  }

  std::size_t run(const NativeConnection& connection, const std::string& sql) const override {
    return static_cast<std::size_t>(number_in(PQcmdTuples(exec(opened(connection), sql).get())));
  }

  void keep_error_codes(const NativeConnection& connection) const override {
    watch_results(postgresql_native(connection));
  }

  // Without this function, libpq writes notices and warnings to standard error.
  void hide_notices(const NativeConnection& connection) const override {
    run(connection, "SET client_min_messages = error");
  }

  // Servers that only speak the protocol of PostgreSQL can lack the setting.
  void do_not_compile(const NativeConnection& connection) const override {
    run(connection, "SELECT pg_catalog.set_config(name, 'off', false) FROM pg_catalog.pg_settings WHERE name = 'jit'");
  }

  void name_session(const NativeConnection& connection, const std::string& name) const override {
    run(connection, "SET application_name = " + quote_literal(postgresql_native(connection), name));
  }

  std::unique_ptr<Dialect> dialect(const std::string& schema) const override { return make_postgresql_dialect(schema); }

 private:
  static PGconn* opened(const NativeConnection& connection) {
    PGconn* const pg = postgresql_native(connection);
    if (pg == nullptr) throw Error(ErrorCode::unsupported_database, "the session is not connected");
    return pg;
  }
};

}  // namespace

// registry.hpp lists it.
extern "C" const Database* txinbox_postgresql_database() noexcept {
  static const PostgresqlDatabase database;
  return &database;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
