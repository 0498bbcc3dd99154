#pragma once

#include <string_view>

#include <txinbox/transaction.hpp>
#include <txinbox/version.hpp>

namespace txinbox::inline TXINBOX_ABI::detail {

/// What a row in this state means to a duplicate. A state that this library does not know is an error:
/// its message is delivered again, never taken for consumed.
///
/// Errors: `Error` unknown_state.
Claim claim_for_state(std::string_view state);

}  // namespace txinbox::inline TXINBOX_ABI::detail
