#pragma once

#include <string_view>

#include <txinbox/claim.hpp>
#include <txinbox/version.hpp>

#include "backend/claim_row.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// What a row in this state means to a duplicate. A state that this library does not know is an error:
/// its message is delivered again, never taken for consumed.
///
/// A row with the hash of another content is a conflict in any state.
///
/// Errors: `Error` unknown_state.
Claim claim_for(const backend::ClaimedRow&, std::string_view content_hash);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
