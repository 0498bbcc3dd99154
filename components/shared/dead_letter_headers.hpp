#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <txinbox/source.hpp>

namespace txinbox::component {

/// A header of a dead letter: its name and its value.
using DeadLetterHeader = std::pair<const char*, std::string>;

/// The headers that say why a message is a dead letter.
inline std::array<DeadLetterHeader, 6> dead_letter_headers(const DeadLetter& letter) {
  return {{{"txinbox-reason", std::string(letter.reason)},
           {"txinbox-error-class", letter.error_class},
           {"txinbox-consumer", letter.consumer},
           {"txinbox-key", letter.business_key},
           {"txinbox-origin", std::string(letter.incoming->id)},
           {"txinbox-failures", std::to_string(letter.failures)}}};
}

/// Whether `dead_letter_headers` has a header of this name. A message that was a dead letter before, and was sent back,
/// still has the old ones: a new dead letter does not keep them.
inline bool is_dead_letter_header(std::string_view name) {
  static constexpr std::array<std::string_view, 6> names{"txinbox-reason", "txinbox-error-class", "txinbox-consumer",
                                                         "txinbox-key",    "txinbox-origin",      "txinbox-failures"};
  return std::ranges::find(names, name) != names.end();
}

}  // namespace txinbox::component
