#pragma once

#include <string_view>

#include <txinbox/result.hpp>
#include <txinbox/version.hpp>

#include "backend/claim_row.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Says what an existing row means for a new delivery of its key.
///
/// A row whose content hash differs from the message's is a conflict in every state. A state that this version does not
/// know is an error, so that the message is delivered again and never counts as consumed.
///
/// Errors: `Error` unknown_state.
Claim claim_for(const backend::ClaimedRow&, std::string_view content_hash);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
