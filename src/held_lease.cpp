#include "held_lease.hpp"

#include <algorithm>

#include <txinbox/error.hpp>

#include "on_session.hpp"
#include "stoppable_sleep.hpp"

namespace txinbox::inline TXINBOX_ABI::detail {

Error lease_lost() {
  return {ErrorCode::lease_lost,
          "another worker has taken the lease over, or an operator has removed its row; nothing is acknowledged: let "
          "the lease be longer than the handler takes, or renew it"};
}

HeldLease::HeldLease(ConsumerContext& context, const LeaseHolder& holder, const Message& message,
                     std::chrono::milliseconds length, std::int64_t fence, Clock::time_point expires_at)
    : context_(context),
      holder_(holder),
      message_(message),
      length_(length),
      fence_(fence),
      expires_at_(expires_at),
      with_consumer_(context.options.stop, [this] { stop_.request_stop(); }),
      lease_(*this, message, stop_.get_token()) {}

void HeldLease::renew() {
  const std::lock_guard one_at_a_time(renewing_);
  Clock::time_point sent;
  const bool renewed = on_session(context_.source, {}, [&](backend::Session& session) {
    sent = Clock::now();
    return LeaseTable(session, context_.consumer, message_).renew(holder_, fence_, length_);
  });
  if (!renewed) {
    stop_.request_stop();
    throw lease_lost();
  }
  expires_at_ = sent + length_;
}

void HeldLease::start_heartbeat(std::chrono::milliseconds interval) {
  heartbeat_ = std::jthread([this, interval](const std::stop_token& stop) { beat(stop, interval); });
}

void HeldLease::beat(const std::stop_token& stop, std::chrono::milliseconds interval) {
  auto pause = interval;
  while (sleep_for(pause, stop)) {
    try {
      renew();
      pause = interval;
    } catch (...) {  // a database that is away: again, as long as there is time
      if (is_lease_lost(std::current_exception())) return;
      pause = interval / 4;
    }
    if (Clock::now() >= expires_at_.load()) {
      stop_.request_stop();
      return;
    }
    pause = std::max(pause, std::chrono::milliseconds(1));
  }
}

}  // namespace txinbox::inline TXINBOX_ABI::detail
