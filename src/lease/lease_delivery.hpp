#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <variant>

#include <txinbox/lease_consumer.hpp>
#include <txinbox/version.hpp>

#include "consume/attempt_marker.hpp"
#include "consume/consumer_context.hpp"
#include "lease/active_lease.hpp"
#include "lease/lease_timer.hpp"
#include "message/content_hash.hpp"
#include "tables/lease_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// One `LeaseConsumer::consume` call.
class LeaseDelivery {
 public:
  LeaseDelivery(ConsumerContext& context, const LeaseOptions& options, LeaseTimer& timer, std::string_view holder_name,
                const Message& message, const LeaseHandler& handler)
      : context_(context),
        options_(options),
        timer_(timer),
        message_(message),
        handler_(handler),
        hash_(message.content),
        owner_{.name = holder_name},
        attempt_(context, message),
        whole_(context.options.retry) {}

  Result consume();

 private:
  /// A lease that is ours.
  struct Grant {
    std::int64_t fence;
    ActiveLease::Clock::time_point expires_at;
  };
  using Answer = std::variant<Grant, Result>;

  Answer claim_or_wait();
  Answer claim(backend::Session&);
  std::optional<Answer> try_claim(backend::Session&);
  Result answer(backend::Session&, backend::ClaimedRow&);
  Result run(const Grant&);
  void begin_handler(ActiveLease&);
  bool start_attempt(ActiveLease&);
  void enter(ActiveLease&);
  void complete(const ActiveLease&, const std::optional<std::string>& result);
  void give_back(const ActiveLease&, const std::exception_ptr& error) noexcept;

  /// Runs a step on a borrowed session, again after transient errors. `stop` ends the wait for a connection.
  template <class Step>
  auto with_retries(const std::stop_token& stop, const Step& step);

  void notify(Event) const noexcept;

  ConsumerContext& context_;
  const LeaseOptions& options_;
  LeaseTimer& timer_;
  const Message& message_;
  const LeaseHandler& handler_;
  const ContentHash hash_;
  const LeaseOwner owner_;
  AttemptMarker attempt_;
  RetrySchedule whole_;       ///< Measures how long the call takes.
  bool looks_first_ = false;  ///< An insert was tried, so the row probably exists: read it first.
  bool handler_ran_ = false;
  bool taken_over_ = false;
  bool parked_ = false;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
