#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include <txinbox/version.hpp>

#include "backend/error_class.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The meaning of an error code of a database. Each database lists its codes once, in its database.cpp.
struct ErrorMeaning {
  ErrorClass error_class = ErrorClass::other;  ///< The meaning for the inbox.
  std::string_view text = {};                  ///< The meaning for people, in a few words. Empty if there is no text.
};

template <class Code>
struct ErrorCodeMeaning {
  Code code;
  ErrorMeaning meaning;
};

/// Returns the first entry for which `fits(code)` is true. Null if there is none.
template <class Code, std::size_t N, class Fits>
constexpr const ErrorMeaning* find_meaning(const std::array<ErrorCodeMeaning<Code>, N>& meanings, const Fits& fits) {
  const auto* const found = std::ranges::find_if(meanings, fits, &ErrorCodeMeaning<Code>::code);
  return found == meanings.end() ? nullptr : &found->meaning;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
