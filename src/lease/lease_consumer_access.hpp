#pragma once

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
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
