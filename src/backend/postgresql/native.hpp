#pragma once

// Access to libpq.

#include <libpq-fe.h>

#include <string>
#include <string_view>
#include <vector>

#include "backend/native_connection.hpp"
#include "backend/postgresql/reply.hpp"
#include "backend/query.hpp"
#include "base/private_api.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace backend {

/// Returns null if the connection is closed.
inline PGconn* postgresql_native(const NativeConnection& connection) noexcept {
  return static_cast<PGconn*>(connection.handle());
}

inline constexpr std::string_view postgresql_name = "postgresql";

/// Runs a string of one or more statements with the simple protocol, which stops at the first error. Returns the last
/// result, which may be the error.
PostgresqlResult try_exec(PGconn* connection, const std::string& sql) noexcept;

/// Does the same, but throws an error as a `DatabaseError`.
PostgresqlResult exec(PGconn* connection, const std::string& sql);

/// Runs one query and fetches all rows as text.
std::vector<Row> postgresql_query(PGconn*, const std::string& sql, std::size_t columns);
std::vector<Row> postgresql_rows(const PostgresqlResult&, std::size_t columns);

/// Throws the error of the result. If the client found the connection broken, the server has sent no SQLSTATE. The code
/// of the error is then 08006.
[[noreturn]] void throw_postgresql_error(PGconn* connection, const PGresult* result);

/// Throws such an error if the client knows that the connection is broken. A handler may have hidden it.
void require_connected(PGconn* connection);

/// Returns the SQLSTATE of the result. Empty if there was no error.
std::string_view sqlstate(const PGresult* result) noexcept;
bool succeeded(const PGresult* result) noexcept;

/// Throws the error `read_only` if the result of BEGIN READ WRITE is the one of a standby: feature_not_supported.
void refuse_standby(PGconn* connection, const PGresult* begun);

std::string quote_literal(PGconn* connection, std::string_view text);
std::string quote_identifier(PGconn* connection, std::string_view name);

/// Returns one field of a result as text. Returns an empty string for NULL.
inline std::string field(const PostgresqlResult& result, int row, int column) {
  return {PQgetvalue(result.get(), row, column), static_cast<std::size_t>(PQgetlength(result.get(), row, column))};
}

}  // namespace backend
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
