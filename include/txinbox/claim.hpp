#pragma once

#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// What a claim found.
enum class Claim {
  claimed,           ///< The key is ours if this transaction commits: run the business SQL.
  already_consumed,  ///< An earlier delivery committed it.
  conflict,          ///< Same key, other content.
  in_progress,       ///< Another worker holds a lease on the key.
  parked,            ///< Given up: the row is parked or torn.
  discarded,         ///< Given up for good by an operator.
};

std::string_view to_string(Claim) noexcept;

TXINBOX_NAMESPACE_END
}  // namespace txinbox
