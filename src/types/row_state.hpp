#pragma once

#include <optional>
#include <string_view>

#include <txinbox/version.hpp>

#include "types/enum_names.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// What the column `state` of the consumed-message table holds.
enum class RowState {
  consuming,  ///< A lease is held, or has run out.
  consumed,
  parked,     ///< It failed too often.
  torn,       ///< Not known whether its work is complete: a handler has committed its transaction by itself.
  discarded,  ///< An operator has given it up.
};

inline constexpr EnumNames<RowState, RowState::discarded> row_state_names("consuming", "consumed", "parked", "torn",
                                                                          "discarded");

constexpr std::string_view to_string(RowState state) noexcept { return row_state_names[state]; }

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
