#pragma once

#include <exception>

#include <txinbox/lease_consumer.hpp>
#include <txinbox/version.hpp>

#include "consume/consumer_policy.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Lets `run` decide later whether a failure counts.
struct LeaseConsumerAccess {
  /// As `LeaseConsumer::consume`.
  static Result consume(LeaseConsumer&, const Message&, const LeaseHandler&, Counting);

  /// Whether the consumer counts this error of a handler as a failure of its message.
  static bool counts(const LeaseConsumer&, const std::exception_ptr& error);

  /// As `PauseCheck::is_paused`. A consumer with leases outside of the database is never paused.
  static bool is_paused(LeaseConsumer&);

  /// As `ConsumerContext::is_parked`. With leases outside of the database it is false: `consume` finds it out.
  static bool is_parked(LeaseConsumer&, const Message&);
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
