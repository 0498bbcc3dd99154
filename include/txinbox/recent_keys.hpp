#pragma once

/// @file
/// The options of a cache that answers duplicates from memory.

#include <chrono>
#include <cstddef>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// Options of a consumer's cache of recent keys. The cache holds keys that this consumer saw committed. It answers
/// their duplicates with `already_consumed` without asking the database. This helps when a broker redelivers many
/// messages.
///
/// The cache contains each key itself and the hash of its content, so it never confuses two keys. It does not answer a
/// delivery that has other content, or whose row has a stored result. The database answers these deliveries.
///
/// The cache belongs to one consumer object of one process. When the pool loses a connection, the cache is cleared,
/// because a failover may have lost what was committed.
///
/// The cache does not see what others change in the database. So for at most `max_age` it still answers
/// `already_consumed` for a key whose row was removed or is no longer `consumed`:
/// - after `forget` or a purge, or after another process marked the row torn;
/// - after the restore of a backup that is older than the key, if this process lost no connection during the restore;
/// - after a failover that closes no connection of this process, for example because the server's host disappeared,
///   until a statement fails.
///
/// So restart the consumers after a restore. After `forget`, wait for `max_age` before the message is sent again.
struct RecentKeys {
  /// How many of the latest keys the cache holds; 0 switches it off. Each key takes at most 0.5 KiB.
  std::size_t capacity = 0;

  /// How long a key stays in the cache, from 1 ms to 24 days. Keep it short, because it limits how long the cache can
  /// be wrong (see above). A broker's redeliveries usually come within seconds.
  std::chrono::milliseconds max_age{60'000};
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
