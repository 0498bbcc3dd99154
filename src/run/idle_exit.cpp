#include "run/idle_exit.hpp"

#include <algorithm>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

void IdleExit::busy(Time now) noexcept {
  last_busy_ = now;
  waits_since_.reset();
}

std::optional<RunEnd> IdleExit::polled_nothing(const SourceStatus& status, Time now) noexcept {
  if (!idle_exit_) return std::nullopt;
  if (status.connected && status.at_end.value_or(true)) {
    waits_since_.reset();
    return now - last_busy_ >= *idle_exit_ ? std::optional(RunEnd::idle) : std::nullopt;
  }
  last_busy_ = now;
  if (!waits_since_) waits_since_ = now;
  if (now - *waits_since_ < std::max<std::chrono::milliseconds>(*idle_exit_, least_wait)) return std::nullopt;
  return status.connected ? RunEnd::not_at_end : RunEnd::unreachable;
}

std::optional<IdleExit::Time> IdleExit::due() const noexcept {
  if (!idle_exit_) return std::nullopt;
  return last_busy_ + *idle_exit_;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
