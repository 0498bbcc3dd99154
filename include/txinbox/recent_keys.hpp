#pragma once

#include <chrono>
#include <cstddef>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// A consumer's memory of the keys that it saw committed: it answers their duplicates with
/// `already_consumed` without asking the database, which matters when a broker delivers much again.
///
/// Each key is kept as it is, with the hash of its content, so that no other key can be taken for it.
/// A delivery with another content is left to the database, and so is one whose row holds a stored
/// result. The memory belongs to one consumer object of one process; a lost connection of its pool
/// empties it, since a failover may have lost what was committed.
///
/// It does not see what others do to the database. For up to `max_age` it goes on answering
/// `already_consumed` for a key whose row is no longer there, or is no longer `consumed`:
/// - after `forget`, a purge, or a row that another process marked as torn;
/// - after a restore of a backup that is older than the key, if no connection of this process was lost by it;
/// - after a failover that closes no connection of this process (a server whose host vanished), until a
///   statement fails.
/// So restart the consumers after a restore, and wait for `max_age` after `forget` before the message is sent again.
struct RecentKeys {
  /// How many keys are kept, the latest ones; 0 keeps none. Each takes at most 0.5 KiB.
  std::size_t capacity = 0;

  /// How long a key is kept, at least 1 ms. Short, since it bounds what is not seen (above); a broker's
  /// redeliveries come within seconds.
  std::chrono::milliseconds max_age{60'000};
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
