#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <txinbox/version.hpp>

#include "backend/native_connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Returns the statements of a migration, without semicolons and without `--` comments. The parser knows quotes, and
/// the DELIMITER lines of MySQL's client. It does not know quotes or semicolons in block comments.
std::vector<std::string> statements_of(std::string_view script);

/// Runs the statements of a migration one by one.
void run_script(const NativeConnection& connection, std::string_view script);

/// Rolls back. It ignores an error: the connection is lost then, or an earlier error has ended the transaction.
void try_roll_back(const NativeConnection& connection) noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
