#include <txinbox/lease_consumer.hpp>

#include <algorithm>
#include <utility>

#include "lease/active_lease.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

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
