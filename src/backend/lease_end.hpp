#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include <txinbox/version.hpp>

#include "backend/dialect.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// SQLite writes NULL for a time if it cannot read the system's clock. A lease without an end or a fence would keep its
/// key forever, so this condition treats it as expired. This library gives every lease an owner, so the condition
/// ignores rows without an owner.
constexpr std::string_view lease_has_no_end =
    "(lease_owner IS NOT NULL AND (lease_expires_at IS NULL OR lease_fence IS NULL))";

/// Returns the condition that a row is 'consuming' and nobody holds its lease: the lease has expired or was released.
inline std::string is_consuming_without_lease(const Dialect& sql) {
  return fmt::format("(state = 'consuming' AND (lease_expires_at <= {} OR {}))", sql.now(), lease_has_no_end);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
