#pragma once

#include <string_view>
#include <vector>

#include <txinbox/retention.hpp>
#include <txinbox/version.hpp>

#include "backend/dialect.hpp"
#include "backend/purge.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Returns the tables of a purge, each with the condition for the old rows to remove. An empty `consumer` means all
/// consumers.
std::vector<backend::PurgeTarget> purge_targets(Purgeable, const backend::Dialect&, std::string_view consumer);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
