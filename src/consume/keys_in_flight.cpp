#include "consume/keys_in_flight.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::optional<KeysInFlight::Turn> KeysInFlight::enter(const std::string& key, Clock::time_point give_up,
                                                      const std::stop_token& stop) {
  std::string own(key);
  std::unique_lock lock(mutex_);
  if (!left_.wait_until(lock, stop, give_up, [&] { return !keys_.contains(key); })) return std::nullopt;
  keys_.insert(key);
  return Turn(*this, std::move(own));
}

void KeysInFlight::leave(const std::string& key) noexcept {
  const std::lock_guard lock(mutex_);
  keys_.erase(key);
  left_.notify_all();
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
