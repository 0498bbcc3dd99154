#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The statements of a migration, without semicolons and without `--` comments: SOCI takes a colon in a comment for a
/// parameter. It knows quotes. It does not know block comments and bodies of procedures, which our files do not have.
std::vector<std::string> statements_of(std::string_view script);

/// Runs them one by one.
void run_script(soci::session& sql, std::string_view script);

/// Rolls back. It ignores an error: then the connection is lost, or an earlier error has ended the transaction.
void try_roll_back(soci::session& sql) noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
