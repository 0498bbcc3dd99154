#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include <txinbox/listener.hpp>
#include <txinbox/metrics.hpp>
#include <txinbox/version.hpp>

#include "metrics/histogram.hpp"
#include "metrics/metrics_text.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Counts the events of consumers and purges. The caller locks.
class DeliveryMetrics {
 public:
  /// Errors: `Error` invalid_argument for buckets that are empty, not positive or not ascending.
  explicit DeliveryMetrics(MetricsOptions options);

  void count(const Event&);
  void write(MetricsText&) const;

 private:
  /// The events that end a delivery.
  static constexpr std::array outcomes = {EventType::consumed,    EventType::already_consumed, EventType::conflict,
                                          EventType::in_progress, EventType::parked,           EventType::failed,
                                          EventType::discarded,   EventType::postponed};
  using Counts = std::map<std::string, std::uint64_t, std::less<>>;

  struct Consumer {
    std::array<std::uint64_t, outcomes.size()> messages{};
    std::array<Histogram, outcomes.size()> durations;
    Histogram ages;
    Counts retries;
    Counts failures;
    std::uint64_t takeovers = 0;
    std::uint64_t torn = 0;
    std::uint64_t purged = 0;
  };

  void write_messages(MetricsText&) const;
  void write_durations(MetricsText&) const;
  void write_errors(MetricsText&) const;
  void write_others(MetricsText&) const;

  MetricsOptions options_;
  std::map<std::string, Consumer, std::less<>> consumers_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
