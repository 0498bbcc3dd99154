#pragma once

#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// SQLite writes NULL for a time if it cannot read the system's clock. A lease without an end or a fence would keep its
/// key forever, so this condition treats it as expired. This library gives every lease an owner, so the condition
/// ignores rows without an owner.
constexpr std::string_view lease_has_no_end =
    "(lease_owner IS NOT NULL AND (lease_expires_at IS NULL OR lease_fence IS NULL))";

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
