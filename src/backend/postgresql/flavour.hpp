#pragma once

// Servers that speak PostgreSQL's protocol and are not PostgreSQL.

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// What the server is, if it is not PostgreSQL; empty if it is. `version` is the result of version().
std::string unknown_postgresql(std::string_view version);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
