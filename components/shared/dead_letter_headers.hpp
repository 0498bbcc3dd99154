#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <txinbox/source.hpp>

namespace txinbox::component {

/// A header of a dead letter: its name and its value.
using DeadLetterHeader = std::pair<std::string_view, std::string>;

/// The headers that say why a message is a dead letter. `source` is the topic or queue that it came from.
/// A message that was a dead letter before, and was sent back, still has the old ones: a new dead letter does not keep
/// them.
inline std::array<DeadLetterHeader, 7> dead_letter_headers(const DeadLetter& letter, std::string_view source) {
  return {{{dead_letter_header::reason, std::string(letter.reason)},
           {dead_letter_header::error_class, letter.error_class},
           {dead_letter_header::consumer, letter.consumer},
           {dead_letter_header::key, letter.business_key},
           {dead_letter_header::origin, std::string(letter.incoming->id)},
           {dead_letter_header::source, std::string(source)},
           {dead_letter_header::failures, std::to_string(letter.failures)}}};
}

}  // namespace txinbox::component
