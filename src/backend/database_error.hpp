#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <txinbox/database_error.hpp>
#include <txinbox/version.hpp>

#include "backend/database.hpp"
#include "backend/error_class.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Throws an error of `database`: a `DatabaseError` that is also SOCI's exception for this database. Without SOCI's
/// adapter it is also a std::runtime_error.
///
/// `handle`: the client library's connection, which must still be open.
[[noreturn]] void throw_database_error(std::string_view database, void* handle, std::string code,
                                       const std::string& text);

/// Which error of which database an exception stands for.
struct DatabaseErrorCode {
  const Database* database = nullptr;  ///< Null for an error that only says that it comes from a database.
  std::string code = {};
  std::string text = {};  ///< The database's own text. It can hold values of the message.

  ErrorClass error_class() const noexcept;
};

/// The exception that is being handled, as an error of a database: a `DatabaseError`, an exception of SOCI, or a
/// handler's exception that was classified by its connection. None for every other one. Call it in a catch block.
std::optional<DatabaseErrorCode> current_database_error() noexcept;

// What SOCI's adapter adds; null where it is not linked.
[[noreturn, gnu::weak]] void throw_soci_error(std::string_view database, void* handle, const std::string& code,
                                              const std::string& text);
[[gnu::weak]] std::optional<DatabaseErrorCode> current_soci_error() noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
