#pragma once

#include <cstdint>

namespace txinbox::torture {

// In a storm on redrive, every ten keys come with a new deployment of the handler. Some deployments are bad. The seed
// decides which, and for which keys.

/// Whether the handler fails for this key until it is repaired. Some deployments fail for all of their keys, some for
/// about half.
bool fails_until_repair(std::uint64_t seed, std::uint64_t key);

/// Whether the messages of this key have no dead-letter queue. The database keeps the payload of one that fails.
bool keeps_payload(std::uint64_t seed, std::uint64_t key);

/// Whether the broker refuses each dead letter of this key when it is published again for the first time.
bool is_refused_at_first(std::uint64_t seed, std::uint64_t key);

}  // namespace txinbox::torture
