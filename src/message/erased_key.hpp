#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The keys of erased messages begin with it. `erased_key_end` is the first text after all of them.
inline constexpr std::string_view erased_key_prefix = "txinbox-erased:";
inline constexpr std::string_view erased_key_end = "txinbox-erased;";

/// Returns the key that replaces the key of an erased message: a SHA-256 of the consumer's name and the key.
std::string erased_key(std::string_view consumer, std::string_view business_key);

// Consumers and `erase` agree on these times, so that no message runs again while its key is replaced. See ErasedKeys.

/// After this time, a consumer reads the erased keys again before it claims a key.
inline constexpr std::chrono::seconds erased_keys_read_every{10};
/// A claim is safe if it was inserted within this time after the consumer has begun to read the erased keys.
inline constexpr std::chrono::seconds erased_keys_valid_for{20};
/// `erase` removes the row of a key this long after it has committed the erased key.
inline constexpr std::chrono::seconds erasure_wait{30};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
