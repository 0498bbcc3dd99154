#pragma once

/// @file
/// The answer to `Transaction::claim`.

#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// The answer to a claim: whether this transaction got the key, and if not, why not.
enum class Claim {
  claimed,           ///< The key is ours if this transaction commits. Run the business SQL.
  already_consumed,  ///< An earlier delivery of this key was committed.
  conflict,          ///< The row of this key has other content.
  in_progress,       ///< Another worker has a lease on the key.
  parked,            ///< The row is parked or torn.
  discarded,         ///< An operator has discarded the message.
};

/// The name of the enumerator, such as "claimed".
std::string_view to_string(Claim) noexcept;

TXINBOX_NAMESPACE_END
}  // namespace txinbox
