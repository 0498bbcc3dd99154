#include "lease/active_lease.hpp"

#include <algorithm>

#include <txinbox/error.hpp>

#include "base/interruptible_sleep.hpp"
#include "pool/with_session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

Error lease_lost() {
  return {ErrorCode::lease_lost,
          "another worker has taken the lease over, or an operator has removed its row; nothing is acknowledged: let "
          "the lease be longer than the handler takes, or renew it"};
}

ActiveLease::ActiveLease(ConsumerContext& context, const LeaseOwner& holder, const Message& message,
                         std::chrono::milliseconds length, std::int64_t fence, Clock::time_point expires_at)
    : context_(context),
      holder_(holder),
      message_(message),
      length_(length),
      fence_(fence),
      time_(expires_at),
      with_consumer_(context.options.stop, [this] { stop_.request_stop(); }),
      with_time_(time_.over.get_token(), [this] { stop_.request_stop(); }),
      lease_(*this, message, stop_.get_token()) {}

void ActiveLease::renew() { renew({}); }

/// `stop` ends the wait for a connection.
void ActiveLease::renew(const std::stop_token& stop) {
  const std::lock_guard one_at_a_time(renewing_);
  Clock::time_point sent;
  const bool renewed = with_session(context_.source, stop, [&](backend::Session& session) {
    sent = Clock::now();
    return LeaseTable(session, context_.consumer, message_).renew(holder_, fence_, length_);
  });
  if (!renewed) {
    stop_.request_stop();
    throw lease_lost();
  }
  time_.ends = sent + length_;
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
      if (is_lease_lost(std::current_exception())) return;
      pause = std::max(interval / 4, std::chrono::milliseconds(1));
    }
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
