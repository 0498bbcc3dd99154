#include "consume/recent_key_cache.hpp"

#include <txinbox/error.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

RecentKeyCache::RecentKeyCache(const RecentKeys& options) : options_(options) {
  if (options.max_age < std::chrono::milliseconds(1) || options.max_age > std::chrono::days(24)) {
    throw Error(ErrorCode::invalid_argument, "RecentKeys::max_age must be from 1 ms to 24 days");
  }
}

bool RecentKeyCache::knows(std::string_view business_key, std::string_view content_hash, std::uint64_t losses) {
  if (!enabled()) return false;
  const std::lock_guard lock(mutex_);
  forget_before(losses);
  const auto at = by_key_.find(business_key);
  return at != by_key_.end() && at->second->content_hash == content_hash &&
         Clock::now() - at->second->since < options_.max_age;
}

void RecentKeyCache::remember(std::string_view business_key, std::string_view content_hash, std::uint64_t losses_before,
                              std::uint64_t losses) {
  if (!enabled()) return;
  const std::lock_guard lock(mutex_);
  forget_before(losses);
  if (losses_before < losses_) return;
  remove(business_key);
  if (entries_.size() == options_.capacity) forget_oldest();
  entries_.push_back({std::string(business_key), std::string(content_hash), Clock::now()});
  by_key_.emplace(entries_.back().business_key, std::prev(entries_.end()));
}

void RecentKeyCache::forget(std::string_view business_key) {
  if (!enabled()) return;
  const std::lock_guard lock(mutex_);
  remove(business_key);
}

void RecentKeyCache::remove(std::string_view business_key) {
  const auto at = by_key_.find(business_key);
  if (at == by_key_.end()) return;
  const auto entry = at->second;
  by_key_.erase(at);
  entries_.erase(entry);
}

void RecentKeyCache::forget_before(std::uint64_t losses) {
  if (losses <= losses_) return;
  losses_ = losses;
  by_key_.clear();
  entries_.clear();
}

void RecentKeyCache::forget_oldest() {
  by_key_.erase(entries_.front().business_key);
  entries_.pop_front();
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
