#pragma once

/// @file
/// The errors of a database, whatever client library a service uses.

#include <string>
#include <string_view>
#include <utility>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// A database error of txinbox's own statements. It contains the name of the database and the database's code.
///
/// The thrown object is also a `std::exception`. In a program that links txinbox::txinbox it is also SOCI's exception
/// for the database, such as `soci::mysql_soci_error`.
///
///     try {
///       consumer.consume(message, handler);
///     } catch (const txinbox::DatabaseError& error) {
///       log(error.database(), error.code());
///     }
class DatabaseError {
 public:
  virtual ~DatabaseError() = default;

  /// "sqlite3", "mysql" (MariaDB and MySQL) or "postgresql".
  std::string_view database() const noexcept { return database_; }

  /// The number of a SQLite, MariaDB or MySQL error, such as "1213"; the SQLSTATE of a PostgreSQL error. 08006 if
  /// libpq has lost the connection.
  const std::string& code() const noexcept { return code_; }

  /// The text of the error, with the database's own text. That text can contain values of the message: do not log it
  /// if readers of the log must not see these values. `describe_error` makes a text without them.
  virtual const char* what() const noexcept = 0;

 protected:
  /// Makes an error. `database` must be one of the names above.
  DatabaseError(std::string_view database, std::string code) : database_(database), code_(std::move(code)) {}

  /// Copies the other error.
  DatabaseError(const DatabaseError&) = default;

  /// Copies the other error.
  DatabaseError& operator=(const DatabaseError&) = default;

 private:
  std::string_view database_;
  std::string code_;
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
