#pragma once

#include <string_view>
#include <vector>

#include <txinbox/version.hpp>

#include "backend/dialect.hpp"
#include "backend/purge.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

enum class Purge { consumed, failed, conflicts };

/// The tables that a purge goes through, and which of their old rows go. Of all consumers where the name is
/// empty.
std::vector<backend::PurgeTarget> purge_targets(Purge, const backend::Dialect&, std::string_view consumer);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
