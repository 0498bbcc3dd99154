#include "consume/attempt_registry.hpp"

#include <atomic>
#include <utility>

#include <txinbox/error.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// The attempts that run on this thread. There can be several: a handler can call `consume` itself.
thread_local int places = 0;

}  // namespace

AttemptRegistry::Registration::Registration(Registration&& other) noexcept
    : flight_(std::exchange(other.flight_, nullptr)),
      exclusive_(std::exchange(other.exclusive_, false)),
      waited_(other.waited_) {}

AttemptRegistry::Registration& AttemptRegistry::Registration::operator=(Registration&& other) noexcept {
  leave();
  flight_ = std::exchange(other.flight_, nullptr);
  exclusive_ = std::exchange(other.exclusive_, false);
  waited_ = other.waited_;
  return *this;
}

void AttemptRegistry::Registration::leave() noexcept {
  const bool exclusive = std::exchange(exclusive_, false);
  if (flight_ != nullptr) std::exchange(flight_, nullptr)->leave(exclusive);
}

AttemptRegistry& AttemptRegistry::of_process() {
  static std::atomic<AttemptRegistry*> current = new AttemptRegistry;
  AttemptRegistry* flight = current;
  while (!flight->owner_.is_this_one()) {
    std::unique_ptr<AttemptRegistry> of_child(new AttemptRegistry(flight));
    if (current.compare_exchange_strong(flight, of_child.get())) return *of_child.release();
  }
  return *flight;
}

bool AttemptRegistry::may_enter(std::uint64_t turn, bool exclusive) const noexcept {
  return *waiting_.begin() == turn && !one_is_exclusive_ && (!exclusive || in_flight_ == 0);
}

AttemptRegistry::Registration AttemptRegistry::enter(bool exclusive, std::chrono::milliseconds longest_wait,
                                                     const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const bool nested = places > 0;
  bool waited = false;
  if (nested) {
    exclusive = false;
  } else {
    const std::uint64_t turn = next_turn_++;
    const auto waiting = waiting_.insert(turn).first;
    waited = !may_enter(turn, exclusive);
    const bool entered =
        !waited || changed_.wait_for(lock, stop, longest_wait, [&] { return may_enter(turn, exclusive); });
    waiting_.erase(waiting);
    changed_.notify_all();
    if (!entered && stop.stop_requested()) {
      throw Error(ErrorCode::stopped, "stopped while waiting for messages that must not be in flight with this one");
    }
    if (!entered) {
      throw Error(ErrorCode::acquire_timeout,
                  "with count_starts, a message that was in flight when a process died must run alone in this process; "
                  "within PoolOptions::acquire_timeout the attempts did not end that this one waits for");
    }
    one_is_exclusive_ = exclusive;
  }
  ++in_flight_;
  ++places;
  return {*this, exclusive, waited};
}

void AttemptRegistry::leave(bool exclusive) noexcept {
  const std::lock_guard lock(mutex_);
  --in_flight_;
  --places;
  if (exclusive) one_is_exclusive_ = false;
  changed_.notify_all();
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
