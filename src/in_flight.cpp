#include "in_flight.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <txinbox/error.hpp>

namespace txinbox::inline TXINBOX_ABI::detail {
namespace {

/// Of this thread: one attempt's handler may consume by itself.
thread_local int places = 0;

}  // namespace

InFlight::Place::Place(Place&& other) noexcept
    : flight_(std::exchange(other.flight_, nullptr)), attempt_(other.attempt_) {}

InFlight::Place& InFlight::Place::operator=(Place&& other) noexcept {
  leave();
  flight_ = std::exchange(other.flight_, nullptr);
  attempt_ = other.attempt_;
  return *this;
}

void InFlight::Place::leave() noexcept {
  if (flight_ != nullptr) std::exchange(flight_, nullptr)->leave(attempt_);
}

bool InFlight::Place::alone() const noexcept {
  const std::lock_guard lock(flight_->mutex_);
  return attempt_->alone;
}

void InFlight::Place::marked() noexcept {
  const std::lock_guard lock(flight_->mutex_);
  attempt_->marked = true;
  flight_->changed_.notify_all();
}

InFlight& InFlight::of_process() {
  static InFlight flight;
  return flight;
}

const Token& InFlight::process() {
  const std::lock_guard lock(mutex_);
  if (const int now = ::getpid(); now != process_id_) {
    process_id_ = now;
    process_ = Token::random();
  }
  return process_;
}

bool InFlight::may_enter(bool exclusive) const {
  if (places > 0) return true;
  if (exclusive && !attempts_.empty()) return false;
  const auto keeps_out = [](const Place::Attempt& each) { return each.exclusive || (each.alone && !each.marked); };
  return joining_ == 0 && std::ranges::none_of(attempts_, keeps_out);
}

InFlight::Place InFlight::enter(bool exclusive, std::function<void()> on_company, const std::stop_token& stop) {
  std::vector<std::function<void()>> to_tell;
  Place place;
  {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [&] { return may_enter(exclusive); })) {
      throw Error(ErrorCode::stopped, "stopped while waiting for messages that must not be in flight with this one");
    }
    for (Place::Attempt& each : attempts_) {
      if (std::exchange(each.alone, false)) to_tell.push_back(each.on_company);
    }
    attempts_.push_back({std::move(on_company), attempts_.empty(), false, exclusive});
    place.flight_ = this;
    place.attempt_ = std::prev(attempts_.end());
    ++places;
    ++joining_;
  }
  const auto joined = [&] {
    const std::lock_guard lock(mutex_);
    --joining_;
    changed_.notify_all();
  };
  try {
    for (const auto& tell : to_tell) tell();
  } catch (...) {
    joined();
    throw;
  }
  joined();
  return place;
}

void InFlight::leave(Attempts::iterator attempt) noexcept {
  const std::lock_guard lock(mutex_);
  attempts_.erase(attempt);
  --places;
  changed_.notify_all();
}

}  // namespace txinbox::inline TXINBOX_ABI::detail
