#pragma once

// Access to the client library of MariaDB or MySQL.

#include <mysql.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "backend/database_error.hpp"
#include "backend/native_connection.hpp"
#include "base/private_api.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace backend {

/// A flag of a bound value: `char` in MariaDB's client library, `bool` in MySQL's.
using MysqlFlag = std::remove_pointer_t<decltype(MYSQL_BIND::is_null)>;

/// Returns null if the connection is closed.
inline MYSQL* mysql_native(const NativeConnection& connection) noexcept {
  return static_cast<MYSQL*>(connection.handle());
}

inline constexpr std::string_view mysql_name = "mysql";

/// A handle without a connection. It is null if there was no memory.
using MysqlHandle = std::unique_ptr<MYSQL, decltype(&mysql_close)>;
MysqlHandle new_mysql_handle();

using MysqlRow = std::vector<std::optional<std::string>>;

/// Runs one statement and ignores its rows. Returns the number of the error, or 0.
unsigned try_exec(MYSQL* connection, std::string_view sql) noexcept;

/// Does the same, but throws an error as a `DatabaseError`.
void exec(MYSQL* connection, std::string_view sql);

/// Reads the further results of a CALL, because SOCI stops after the first result. Returns the number of the error, or
/// 0.
unsigned drain(MYSQL* connection) noexcept;

/// Returns the first row of a query. Returns none if there is no row.
std::optional<MysqlRow> query_row(MYSQL* connection, std::string_view sql);

/// Returns all rows of a statement's first result. It ignores further results.
std::vector<MysqlRow> query_rows(MYSQL* connection, std::string_view sql);

/// The result of a statement.
struct MysqlReply {
  bool has_rows = false;            ///< It has returned a result, which may be empty.
  std::vector<MysqlRow> rows = {};  ///< All rows of its first result.
};

/// Runs one statement and reads all rows of its first result, if it has one. Returns the number of the error, or 0.
unsigned try_query(MYSQL* connection, std::string_view sql, MysqlReply& reply);

/// Whether the client library connects again by itself.
bool reconnects(MYSQL* connection) noexcept;

[[noreturn]] void throw_mysql_error(MYSQL* connection);
[[noreturn]] void throw_mysql_error(MYSQL* connection, unsigned code, const std::string& text);

/// Returns the number of an error of this database.
unsigned mysql_number(const DatabaseError& error) noexcept;

/// Returns the encryption that the client sees, such as "TLSv1.3, TLS_AES_256_GCM_SHA384". Empty if the connection is
/// not encrypted.
std::string mysql_encryption(MYSQL* connection);

/// Returns a literal x'…'. It means the same bytes under every character set and sql_mode.
std::string hex_literal(std::string_view bytes);

/// Returns `name` with quotation marks.
std::string quoted_identifier(std::string_view name);

/// Returns the condition for the row of one key.
std::string key_condition(std::string_view consumer, std::string_view business_key);

/// Returns one compound statement of MariaDB. `statements` are separated by semicolons.
std::string compound(const std::string& statements);

/// Returns 'text' with quotes and backslashes escaped. It is only for names and values that come from the server.
std::string quoted(std::string_view text);

}  // namespace backend
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
