#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <txinbox/source.hpp>

namespace txinbox::component {

/// A header of a dead letter: its name and its value.
using DeadLetterHeader = std::pair<const char*, std::string>;

/// If the headers of a message do not fit, its dead letter has none of them, but this one with their number.
inline constexpr auto dropped_headers = "txinbox-dropped-headers";

/// The headers that say why a message is a dead letter.
inline std::array<DeadLetterHeader, 6> dead_letter_headers(const DeadLetter& letter) {
  return {{{"txinbox-reason", std::string(letter.reason)},
           {"txinbox-error-class", letter.error_class},
           {"txinbox-consumer", letter.consumer},
           {"txinbox-key", letter.business_key},
           {"txinbox-origin", std::string(letter.incoming->id)},
           {"txinbox-failures", std::to_string(letter.failures)}}};
}

/// Whether one of these headers has this name. A message that was a dead letter before, and was sent back, still has
/// the old ones: a new dead letter does not keep them.
inline bool is_one_of(std::span<const DeadLetterHeader> headers, std::string_view name) {
  return std::ranges::any_of(headers, [&](const DeadLetterHeader& each) { return name == each.first; });
}

}  // namespace txinbox::component
