#include "lease/active_lease.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>
#include <txinbox/lease_consumer.hpp>

#include "backend/failure.hpp"
#include "base/interruptible_sleep.hpp"
#include "consume/consumer_policy.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

Error lease_lost() {
  return {ErrorCode::lease_lost,
          "another worker has taken over the lease, or an operator has deleted its row; the message was not "
          "acknowledged. Make LeaseTerms::length longer than the handler takes, or renew the lease"};
}

Error lease_is_too_short(std::chrono::milliseconds lease) {
  return {
      ErrorCode::lease_lost,
      fmt::format("the lease of {} ms expired before its handler could start, because the round trips to the database "
                  "took as long; make LeaseTerms::length longer",
                  lease.count())};
}

ActiveLease::ActiveLease(LeaseCall& call, const Grant& grant, const Message& message, const LeaseClock& clock,
                         const std::stop_token& stop)
    : call_(call),
      clock_(clock),
      fence_(grant.fence),
      time_(grant.expires_at),
      with_consumer_(stop, [this] { stop_.request_stop(); }),
      with_time_(time_.over.get_token(), [this] { stop_.request_stop(); }),
      lease_(*this, message, stop_.get_token()) {}

void ActiveLease::renew() { renew({}); }

/// Renews the lease. `stop` ends the wait for a connection.
void ActiveLease::renew(const std::stop_token& stop) {
  const std::lock_guard one_at_a_time(renewing_);
  const auto expires_at = call_.renew(fence_, stop);
  if (!expires_at) {
    stop_.request_stop();
    throw lease_lost();
  }
  time_.ends = *expires_at;
}

void ActiveLease::start_heartbeat(std::chrono::milliseconds interval) {
  heartbeat_ = std::jthread([this, interval](const std::stop_token& ended) { beat(ended, interval); });
}

void ActiveLease::beat(const std::stop_token& ended, std::chrono::milliseconds interval) {
  std::stop_source stop;  // set when the handler has ended, or the lease has expired
  const auto request_stop = [&stop] { stop.request_stop(); };
  const std::stop_callback with_handler(ended, request_stop);
  const std::stop_callback with_time(time_.over.get_token(), request_stop);
  const std::stop_token token = stop.get_token();
  auto pause = interval;
  while (sleep_for(pause, token)) {
    try {
      renew(token);
      pause = interval;
    } catch (...) {  // the database may be unavailable: try again until the lease expires
      if (Failure::current().is(ErrorCode::lease_lost)) return;
      pause = std::max(interval / 4, std::chrono::milliseconds(1));
    }
  }
}

}  // namespace detail

Lease::Lease(detail::ActiveLease& held, const Message& message, std::stop_token stop)
    : held_(held), delivery_(message, 1, std::move(stop)) {}

std::int64_t Lease::fence() const noexcept { return held_.fence(); }

std::chrono::steady_clock::time_point Lease::expires_at() const noexcept { return held_.expires_at(); }

std::chrono::milliseconds Lease::remaining() const noexcept {
  using std::chrono::milliseconds;
  const auto left = std::chrono::floor<milliseconds>(expires_at() - held_.now());
  return std::max(left, milliseconds(0));
}

void Lease::renew() { held_.renew(); }

std::stop_token Lease::stop_token() const noexcept { return delivery_.stop_token(); }

TXINBOX_NAMESPACE_END
}  // namespace txinbox
