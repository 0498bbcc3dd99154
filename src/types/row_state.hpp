#pragma once

#include <optional>
#include <string_view>

#include <txinbox/version.hpp>

#include "types/enum_names.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The values of the column `state` in the consumed-message table.
enum class RowState {
  consuming,  ///< A worker holds the lease, or the lease has expired.
  consumed,
  parked,     ///< The message failed too often, or its handler rejected it.
  torn,       ///< A handler committed the transaction itself, so its work may be incomplete.
  discarded,  ///< An operator discarded the message.
};

inline constexpr EnumNames<RowState, RowState::discarded> row_state_names("consuming", "consumed", "parked", "torn",
                                                                          "discarded");

constexpr std::string_view to_string(RowState state) noexcept { return row_state_names[state]; }

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
