#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <txinbox/error.hpp>
#include <txinbox/version.hpp>

#include "backend/database.hpp"
#include "backend/error_class.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Throws an error of `database` as a `DatabaseError`. If SOCI's adapter is linked, the exception is also SOCI's
/// exception for this database. Otherwise it is also a std::runtime_error.
///
/// `handle` is the client library's connection, which must still be open.
[[noreturn]] void throw_database_error(std::string_view database, void* handle, std::string code,
                                       const std::string& text);

/// The database and the code of an error that an exception stands for.
struct DatabaseErrorCode {
  const Database* database = nullptr;  ///< Null if the exception says only that a database caused it.
  std::string code = {};
  std::string text = {};         ///< The database's own text. It can contain values of the message.
  bool is_session_lost = false;  ///< The class is `connection_lost`, whatever the code says.

  ErrorClass error_class() const noexcept;
};

/// Returns the database error that the current exception stands for: a `DatabaseError`, an exception of SOCI, or a
/// handler's exception that its connection has classified. Returns none for any other exception. Call it in a catch
/// block.
std::optional<DatabaseErrorCode> current_database_error() noexcept;

// SOCI's adapter defines these functions. They are null if the adapter is not linked.
[[noreturn, gnu::weak]] void throw_soci_error(std::string_view database, void* handle, const std::string& code,
                                              const std::string& text);
[[gnu::weak]] std::optional<DatabaseErrorCode> current_soci_error() noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
