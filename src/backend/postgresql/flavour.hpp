#pragma once

// Servers that speak PostgreSQL's protocol and are not PostgreSQL.

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Returns the name of the server's product if it is not PostgreSQL. Empty if it is PostgreSQL. `version` is the result
/// of version().
std::string unknown_postgresql(std::string_view version);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
