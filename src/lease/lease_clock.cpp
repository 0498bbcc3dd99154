#include "lease/lease_clock.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

namespace {

class SteadyClock final : public LeaseClock {
 public:
  Clock::time_point now() const noexcept override { return Clock::now(); }
};

}  // namespace

const LeaseClock& LeaseClock::steady() noexcept {
  static const SteadyClock clock;
  return clock;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
