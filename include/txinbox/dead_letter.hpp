#pragma once

/// @file
/// The headers of dead letters.

#include <algorithm>
#include <array>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// The headers that a source adds to a dead letter, and that `redrive` adds to a message that it publishes again. The
/// dead-letter queue of RocketMQ takes no headers.
namespace dead_letter_header {

inline constexpr std::string_view reason = "txinbox-reason";            ///< `DeadLetter::reason`.
inline constexpr std::string_view error_class = "txinbox-error-class";  ///< `DeadLetter::error_class`.
inline constexpr std::string_view consumer = "txinbox-consumer";        ///< `DeadLetter::consumer`.
inline constexpr std::string_view key = "txinbox-key";                  ///< `DeadLetter::business_key`.
inline constexpr std::string_view origin = "txinbox-origin";            ///< `Incoming::id` of the message.
inline constexpr std::string_view source = "txinbox-source";      ///< The topic or queue that the message came from.
inline constexpr std::string_view failures = "txinbox-failures";  ///< `DeadLetter::failures`.

/// If the headers of a message do not fit, its dead letter has none of them, but this one with their number.
inline constexpr std::string_view dropped_headers = "txinbox-dropped-headers";

/// How often `redrive` has published the message again. The message and its later dead letters have it.
inline constexpr std::string_view redrives = "txinbox-redrives";

/// The call of `redrive` that has published the message last, as 32 hexadecimal digits.
inline constexpr std::string_view redrive = "txinbox-redrive";

/// Those that say why a message became a dead letter. A new dead letter of the message has new ones, and a message that
/// is published again has none.
inline constexpr std::array<std::string_view, 7> about_failure{reason, error_class, consumer, key,
                                                               origin, source,      failures};

/// Whether a header with this name says why a message became a dead letter.
inline bool is_about_failure(std::string_view name) noexcept {
  return std::ranges::find(about_failure, name) != about_failure.end();
}

}  // namespace dead_letter_header

/// Whether `redrive` removes a header with this name from a message, or replaces it.
inline bool is_replaced_by_redrive(std::string_view name) noexcept {
  return name == dead_letter_header::redrives || name == dead_letter_header::redrive ||
         dead_letter_header::is_about_failure(name);
}

TXINBOX_API_END
}  // namespace txinbox
