#include "backend/postgresql_native.hpp"

#include <new>

namespace txinbox::inline TXINBOX_ABI::backend {
namespace {

std::string take(char* text) {
  if (text == nullptr) throw std::bad_alloc();  // the encoding was checked before
  std::string copy(text);
  PQfreemem(text);
  return copy;
}

}  // namespace

PostgresqlResult try_exec(PGconn* connection, const std::string& sql) noexcept {
  return PostgresqlResult(PQexec(connection, sql.c_str()));
}

PostgresqlResult exec(PGconn* connection, const std::string& sql) {
  auto result = try_exec(connection, sql);
  if (!succeeded(result.get())) throw_postgresql_error(connection, result.get());
  return result;
}

void throw_postgresql_error(PGconn* connection, const PGresult* result) {
  const std::string_view state = sqlstate(result);
  const char* text = result == nullptr ? PQerrorMessage(connection) : PQresultErrorMessage(result);
  throw soci::postgresql_soci_error(std::string("txinbox: ") + text, state.empty() ? "08006" : state.data());
}

std::string_view sqlstate(const PGresult* result) noexcept {
  const char* state = result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_SQLSTATE);
  return state == nullptr ? std::string_view() : std::string_view(state);
}

bool succeeded(const PGresult* result) noexcept {
  const ExecStatusType status = PQresultStatus(result);
  return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY;
}

std::string quote_literal(PGconn* connection, std::string_view text) {
  return take(PQescapeLiteral(connection, text.data(), text.size()));
}

std::string quote_identifier(PGconn* connection, std::string_view name) {
  return take(PQescapeIdentifier(connection, name.data(), name.size()));
}

}  // namespace txinbox::inline TXINBOX_ABI::backend
