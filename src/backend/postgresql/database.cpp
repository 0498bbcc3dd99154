#include <memory>
#include <utility>

#include "backend/database.hpp"
#include "backend/postgresql/catalog.hpp"
#include "backend/postgresql/dialect.hpp"
#include "backend/postgresql/error_meaning.hpp"
#include "backend/postgresql/kept_sqlstate.hpp"
#include "backend/postgresql/session.hpp"
#include "backend/postgresql/user_sql.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

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

  void run(const NativeConnection& connection, const std::string& sql) const override { exec(opened(connection), sql); }

  void keep_error_codes(const NativeConnection& connection) const override {
    keep_sqlstate(postgresql_native(connection));
  }

  // libpq writes notices and warnings to standard error.
  void hide_notices(const NativeConnection& connection) const override {
    run(connection, "SET client_min_messages = error");
  }

  void name_session(const NativeConnection& connection, const std::string& name) const override {
    run(connection, "SET application_name = " + quote_literal(postgresql_native(connection), name));
  }

  std::unique_ptr<Dialect> dialect(const std::string& schema) const override { return make_postgresql_dialect(schema); }

  const UserSql& user_sql() const noexcept override { return postgresql_user_sql(); }

  ScratchSql scratch_sql() const override {
    return {
        .key_type = "text collate \"C\"",
        .as_text = "convert_from({}, 'UTF8')",
        .error_ends_transaction = true,
        .count_open = "select count(*) from pg_stat_activity where application_name = :n and xact_start is not null"};
  }

 private:
  static PGconn* opened(const NativeConnection& connection) {
    PGconn* const pg = postgresql_native(connection);
    if (pg == nullptr) throw Error(ErrorCode::unsupported_database, "the session is not connected");
    return pg;
  }
};

}  // namespace

// registry.cpp lists it.
extern "C" const Database* txinbox_postgresql_database() noexcept {
  static const PostgresqlDatabase database;
  return &database;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
