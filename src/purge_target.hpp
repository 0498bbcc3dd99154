#pragma once

#include <string_view>
#include <vector>

#include <txinbox/version.hpp>

#include "backend/dialect.hpp"
#include "backend/purge.hpp"

namespace txinbox::inline TXINBOX_ABI::detail {

enum class Purge { consumed, failed, conflicts };

/// The tables that a purge goes through, and which of their old rows go. Of all consumers where the name is
/// empty.
std::vector<backend::PurgeTarget> purge_targets(Purge, const backend::Dialect&, std::string_view consumer);

}  // namespace txinbox::inline TXINBOX_ABI::detail
