#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

#include <txinbox/lease_consumer.hpp>
#include <txinbox/listener.hpp>
#include <txinbox/message.hpp>
#include <txinbox/result.hpp>
#include <txinbox/version.hpp>

#include "backend/failure.hpp"
#include "consume/consumer_policy.hpp"
#include "lease/lease_timer.hpp"
#include "message/content_hash.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

class ActiveLease;

/// A lease that was granted to this call.
struct Grant {
  std::int64_t fence;
  LeaseTime::Clock::time_point expires_at;
  bool taken_over = false;  ///< The lease of another worker had expired.
};

/// The steps of one `consume` call on its key in a lease store.
///
/// Each step is atomic in the store, and changes nothing unless this call has the lease. If the reply to a step is
/// lost, the step finds out whether it took effect. Every step except `renew` runs again after a transient error, as
/// often as the retry policy allows.
class LeaseCall {
 public:
  virtual ~LeaseCall() = default;
  LeaseCall(const LeaseCall&) = delete;
  LeaseCall& operator=(const LeaseCall&) = delete;

  /// Asks for the lease. Returns a result if the key is not free.
  virtual std::variant<Grant, Result> claim() = 0;

  /// Extends the lease to `lease` from now, and returns its new end. Returns none if the lease is lost.
  ///
  /// `stop` ends the wait for a connection. Any thread may call it while another step runs.
  virtual std::optional<LeaseTime::Clock::time_point> renew(std::int64_t fence, const std::stop_token& stop) = 0;

  /// For `count_starts`: records that an attempt starts. It may wait, and then it renews the lease. Returns false if
  /// the message has crashed its process too often; then it was parked.
  virtual bool start_attempt(ActiveLease&) { return true; }

  /// Completes the message. Returns false if the lease is lost.
  virtual bool complete(std::int64_t fence, const std::optional<std::string>& result) = 0;

  /// Call it after a failed attempt. It counts the failure, then parks the message or releases its lease. Returns
  /// whether it parked the message. If the call fails, the lease expires by itself.
  virtual bool give_back(std::int64_t fence, const Failure&, Counting) noexcept = 0;

 protected:
  LeaseCall() = default;
};

/// Begins the calls of one `LeaseConsumer`: on the database, or on a `LeaseStore`.
class LeaseProvider {
 public:
  virtual ~LeaseProvider() = default;
  LeaseProvider(const LeaseProvider&) = delete;
  LeaseProvider& operator=(const LeaseProvider&) = delete;

  /// The options of the consumer.
  virtual const ConsumerPolicy& policy() const noexcept = 0;

  /// Begins one `consume` call. All arguments must outlive it. `notify` gets the event `retry`.
  virtual std::unique_ptr<LeaseCall> begin(const Message&, const ContentHash&,
                                           const std::function<void(Event)>& notify) = 0;

  /// Counts the result for `status` if it is a duplicate. It ignores errors.
  virtual void count_duplicate(const Result&) noexcept {}

  /// As `PauseCheck::is_paused`.
  virtual bool is_paused() { return false; }

  /// As `ConsumerContext::is_parked`. False: a call finds it out.
  virtual bool is_parked(const Message&) { return false; }

  /// Identifies the place where the leases are kept, for the check against nested calls.
  virtual const void* identity() const noexcept = 0;

 protected:
  LeaseProvider() = default;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
