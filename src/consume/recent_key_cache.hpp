#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include <txinbox/consumer_options.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The keys that a consumer saw committed. Thread-safe.
///
/// `losses` is the number of lost connections of the pool. After a loss, the cache forgets all keys, because a failover
/// may have lost their commits. A key is not added if its transaction began before the latest loss.
class RecentKeyCache {
 public:
  /// Errors: `Error` invalid_argument.
  explicit RecentKeyCache(const RecentKeys&);

  bool enabled() const noexcept { return options_.capacity != 0; }

  /// Whether this key is known as committed with exactly this content.
  bool knows(std::string_view business_key, std::string_view content_hash, std::uint64_t losses);

  /// Adds a committed key. `losses_before` is the number before the transaction, `losses` the number now.
  void remember(std::string_view business_key, std::string_view content_hash, std::uint64_t losses_before,
                std::uint64_t losses);

  /// Removes a key whose row turned out not to be consumed.
  void forget(std::string_view business_key);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::string business_key;
    std::string content_hash;
    Clock::time_point since;
  };
  using Entries = std::list<Entry>;

  void remove(std::string_view business_key);
  void forget_before(std::uint64_t losses);
  void forget_oldest();

  const RecentKeys options_;
  std::mutex mutex_;
  std::uint64_t losses_ = 0;
  Entries entries_;  ///< The oldest entry is first.
  std::unordered_map<std::string_view, Entries::iterator> by_key_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
