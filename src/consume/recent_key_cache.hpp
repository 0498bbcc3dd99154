#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include <txinbox/recent_keys.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The keys that a consumer saw committed. Thread-safe.
///
/// `losses` counts the pool's lost connections: what was seen before the last of them is forgotten,
/// and what a transaction committed that began before it is not remembered.
class RecentKeyCache {
 public:
  /// Errors: `Error` invalid_argument.
  explicit RecentKeyCache(const RecentKeys&);

  bool enabled() const noexcept { return options_.capacity != 0; }

  /// Whether this key is known as committed with this very content.
  bool knows(std::string_view business_key, std::string_view content_hash, std::uint64_t losses);

  /// `losses_before` is as it was before the transaction, `losses` as it is now.
  void remember(std::string_view business_key, std::string_view content_hash, std::uint64_t losses_before,
                std::uint64_t losses);

  /// For a key whose row has turned out not to be consumed.
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
  Entries entries_;  ///< The oldest first.
  std::unordered_map<std::string_view, Entries::iterator> by_key_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
