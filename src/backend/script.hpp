#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <txinbox/version.hpp>

#include "backend/native_connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The statements of a migration, without semicolons and without `--` comments. It knows quotes, and lines with
/// DELIMITER as MySQL's client takes them. It does not know quotes or semicolons in block comments.
std::vector<std::string> statements_of(std::string_view script);

/// Runs them one by one.
void run_script(const NativeConnection& connection, std::string_view script);

/// Rolls back. It ignores an error: then the connection is lost, or an earlier error has ended the transaction.
void try_roll_back(const NativeConnection& connection) noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
