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

/// The statements of a migration, without their semicolons and without `--` comments, whose colons
/// SOCI would take for parameters. Knows quotes; made for our own files, which hold neither block
/// comments nor bodies of procedures.
std::vector<std::string> statements_of(std::string_view script);

/// Runs them one by one.
void run_script(soci::session& sql, std::string_view script);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
