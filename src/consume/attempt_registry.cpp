#include "consume/attempt_registry.hpp"

#include <atomic>
#include <utility>

#include <txinbox/error.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// The number of attempts that run on this thread. It can be greater than one: a handler can call `consume` itself.
thread_local int running_on_thread = 0;

}  // namespace

AttemptRegistry::Registration::Registration(Registration&& other) noexcept
    : registry_(std::exchange(other.registry_, nullptr)),
      exclusive_(std::exchange(other.exclusive_, false)),
      waited_(other.waited_) {}

AttemptRegistry::Registration& AttemptRegistry::Registration::operator=(Registration&& other) noexcept {
  leave();
  registry_ = std::exchange(other.registry_, nullptr);
  exclusive_ = std::exchange(other.exclusive_, false);
  waited_ = other.waited_;
  return *this;
}

void AttemptRegistry::Registration::leave() noexcept {
  const bool exclusive = std::exchange(exclusive_, false);
  if (registry_ != nullptr) std::exchange(registry_, nullptr)->leave(exclusive);
}

AttemptRegistry& AttemptRegistry::of_process() {
  static std::atomic<AttemptRegistry*> current = new AttemptRegistry;
  AttemptRegistry* registry = current;
  while (!registry->owner_.is_this_one()) {
    std::unique_ptr<AttemptRegistry> of_child(new AttemptRegistry(registry));
    if (current.compare_exchange_strong(registry, of_child.get())) return *of_child.release();
  }
  return *registry;
}

bool AttemptRegistry::may_enter(std::uint64_t turn, bool exclusive) const noexcept {
  return *waiting_.begin() == turn && !exclusive_runs_ && (!exclusive || running_ == 0);
}

AttemptRegistry::Registration AttemptRegistry::enter(bool exclusive, std::chrono::milliseconds longest_wait,
                                                     const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const bool nested = running_on_thread > 0;
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
      throw Error(ErrorCode::stopped, "the stop token was set while this message waited for other attempts to end");
    }
    if (!entered) {
      throw Error(ErrorCode::acquire_timeout,
                  "with count_starts, a message that may have crashed a process runs alone; the other attempts of this "
                  "process did not end within PoolOptions::acquire_timeout");
    }
    exclusive_runs_ = exclusive;
  }
  ++running_;
  ++running_on_thread;
  return {*this, exclusive, waited};
}

void AttemptRegistry::leave(bool exclusive) noexcept {
  const std::lock_guard lock(mutex_);
  --running_;
  --running_on_thread;
  if (exclusive) exclusive_runs_ = false;
  changed_.notify_all();
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
