#include "backend/postgresql/native.hpp"

#include <new>
#include <utility>

#include <fmt/format.h>

#include "backend/database_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

std::string take(char* text) {
  if (text == nullptr) throw std::bad_alloc();  // there was no memory: the encoding was checked before
  std::string copy(text);
  PQfreemem(text);
  return copy;
}

}  // namespace

PostgresqlResult try_exec(PGconn* connection, const std::string& sql) noexcept {
  end_open_commands(connection);
  if (PQsendQuery(connection, sql.c_str()) == 0) return {};
  PostgresqlResult last;
  while (PostgresqlResult next = next_result(connection)) last = std::move(next);
  return last;
}

PostgresqlResult exec(PGconn* connection, const std::string& sql) {
  auto result = try_exec(connection, sql);
  if (!succeeded(result.get())) throw_postgresql_error(connection, result.get());
  return result;
}

std::vector<Row> postgresql_query(PGconn* connection, const std::string& text, std::size_t columns) {
  return postgresql_rows(exec(connection, text), columns);
}

std::vector<Row> postgresql_rows(const PostgresqlResult& result, std::size_t columns) {
  std::vector<Row> rows(static_cast<std::size_t>(PQntuples(result.get())), Row(columns));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      const int row = static_cast<int>(i);
      const int column = static_cast<int>(j);
      if (PQgetisnull(result.get(), row, column) == 0) rows[i][j] = field(result, row, column);
    }
  }
  return rows;
}

void throw_postgresql_error(PGconn* connection, const PGresult* result) {
  const std::string_view state = sqlstate(result);
  if (const auto silence = fatal_silence(connection); silence.count() > 0 && state.empty()) {
    throw_database_error(
        postgresql_name, connection, "08006",
        fmt::format("txinbox: the server said nothing for {} ms, and the connection was given up", silence.count()));
  }
  const char* text = result == nullptr ? PQerrorMessage(connection) : PQresultErrorMessage(result);
  throw_database_error(postgresql_name, connection, state.empty() ? "08006" : std::string(state),
                       std::string("txinbox: ") + text);
}

void require_connected(PGconn* connection) {
  if (PQstatus(connection) != CONNECTION_OK) throw_postgresql_error(connection, nullptr);
}

std::string_view sqlstate(const PGresult* result) noexcept {
  const char* state = result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_SQLSTATE);
  return state == nullptr ? std::string_view() : std::string_view(state);
}

bool succeeded(const PGresult* result) noexcept {
  const ExecStatusType status = PQresultStatus(result);
  return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY;
}

void refuse_standby(PGconn* connection, const PGresult* begun) {
  if (sqlstate(begun) != "0A000") return;
  throw_database_error(postgresql_name, connection, "25006", "txinbox: the server is read-only: it is a standby");
}

std::string quote_literal(PGconn* connection, std::string_view text) {
  return take(PQescapeLiteral(connection, text.data(), text.size()));
}

std::string quote_identifier(PGconn* connection, std::string_view name) {
  return take(PQescapeIdentifier(connection, name.data(), name.size()));
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
