#pragma once

// Access to the client library of MariaDB or MySQL.

#include <mysql.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/version.hpp>

#include "backend/database_error.hpp"
#include "backend/native_connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Null when it is closed.
inline MYSQL* mysql_native(const NativeConnection& connection) noexcept {
  return static_cast<MYSQL*>(connection.handle());
}

inline constexpr std::string_view mysql_name = "mysql";

/// A handle without a connection. Null: there is no memory.
using MysqlHandle = std::unique_ptr<MYSQL, decltype(&mysql_close)>;
MysqlHandle new_mysql_handle();

using MysqlRow = std::vector<std::optional<std::string>>;

/// Runs one statement and drops its rows. Returns the error's number, 0 for none.
unsigned try_exec(MYSQL* connection, std::string_view sql) noexcept;

/// The same, and throws an error as a `DatabaseError`.
void exec(MYSQL* connection, std::string_view sql);

/// Reads the further results of a CALL: SOCI stops after the first. Returns the error's number.
unsigned drain(MYSQL* connection) noexcept;

/// The first row of a query, if there is one.
std::optional<MysqlRow> query_row(MYSQL* connection, std::string_view sql);

/// All rows of a statement's first result; further ones are dropped.
std::vector<MysqlRow> query_rows(MYSQL* connection, std::string_view sql);

[[noreturn]] void throw_mysql_error(MYSQL* connection);
[[noreturn]] void throw_mysql_error(MYSQL* connection, unsigned code, const std::string& text);

/// The number of an error of this database.
unsigned mysql_number(const DatabaseError& error) noexcept;

/// "TLSv1.3, TLS_AES_256_GCM_SHA384" as the client sees it; empty without encryption.
std::string mysql_encryption(MYSQL* connection);

/// A literal x'…'. It means these bytes whatever character set and sql_mode the session has.
std::string hex_literal(std::string_view bytes);

/// `name`, quoted.
std::string quoted_identifier(std::string_view name);

/// The condition for the row of one key.
std::string key_condition(std::string_view consumer, std::string_view business_key);

/// One compound statement of MariaDB, made of statements that are separated by semicolons.
std::string compound(const std::string& statements);

/// 'text' with quotes and backslashes escaped. Only for names and values that come from the server.
std::string quoted(std::string_view text);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
