#include "metrics/delivery_metrics.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "metrics/entry.hpp"
#include "metrics/metrics_text.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

using namespace std::chrono_literals;

void check_bounds(std::string_view name, const Bounds& bounds) {
  const bool ascends = std::ranges::adjacent_find(bounds, std::ranges::greater_equal()) == bounds.end();
  if (!bounds.empty() && ascends && bounds.front() > 0ns) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("MetricsOptions::{} must be positive times, each greater than the one before it", name));
}

void write_histogram(MetricsText& text, const Histogram& histogram, const Bounds& bounds, const Labels& labels) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < histogram.buckets.size(); ++i) {
    count += histogram.buckets[i];
    const std::string bound =
        i < bounds.size() ? fmt::format("{}", std::chrono::duration<double>(bounds[i]).count()) : "+Inf";
    Labels with_bound = labels;
    with_bound.emplace_back("le", bound);
    text.sample("_bucket", with_bound, count);
  }
  text.sample("_sum", labels, histogram.seconds);
  text.sample("_count", labels, count);
}

}  // namespace

DeliveryMetrics::DeliveryMetrics(MetricsOptions options) : options_(std::move(options)) {
  check_bounds("duration_buckets", options_.duration_buckets);
  check_bounds("age_buckets", options_.age_buckets);
}

void DeliveryMetrics::count(const Event& event) {
  Consumer& consumer = entry_of(consumers_, event.consumer, options_.max_consumers);
  switch (event.type) {
    case EventType::retry:
      ++entry_of(consumer.retries, event.error_class, options_.max_error_classes);
      return;
    case EventType::lease_taken_over:
      ++consumer.takeovers;
      return;
    case EventType::torn:
      ++consumer.torn;
      return;
    case EventType::purged:
      consumer.purged += event.rows;
      return;
    default:
      break;
  }
  const auto* at = std::ranges::find(outcomes, event.type);
  if (at == outcomes.end()) return;
  const auto outcome = static_cast<std::size_t>(at - outcomes.begin());
  ++consumer.messages[outcome];
  consumer.durations[outcome].add(event.duration, options_.duration_buckets);
  if (event.age) consumer.ages.add(std::max<std::chrono::nanoseconds>(*event.age, 0ns), options_.age_buckets);
  if (event.type == EventType::failed || (event.type == EventType::parked && !event.error_class.empty())) {
    ++entry_of(consumer.failures, event.error_class, options_.max_error_classes);
  }
}

void DeliveryMetrics::write(MetricsText& text) const {
  write_messages(text);
  write_durations(text);
  write_errors(text);
  write_others(text);
}

void DeliveryMetrics::write_messages(MetricsText& text) const {
  text.open("txinbox_messages_total", "counter", "Deliveries by how they ended.");
  for (const auto& [name, consumer] : consumers_) {
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      text.sample("", {{"consumer", name}, {"outcome", to_string(outcomes[i])}}, consumer.messages[i]);
    }
  }
}

void DeliveryMetrics::write_durations(MetricsText& text) const {
  text.open("txinbox_duration_seconds", "histogram",
            "Time from the call of consume to the end of the delivery; in a batch, to the end of the batch.");
  for (const auto& [name, consumer] : consumers_) {
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (consumer.messages[i] == 0) continue;
      write_histogram(text, consumer.durations[i], options_.duration_buckets,
                      {{"consumer", name}, {"outcome", to_string(outcomes[i])}});
    }
  }
  text.open("txinbox_duplicate_age_seconds", "histogram",
            "Age of the original when its duplicate came; without those that a memory of recent keys answered.");
  for (const auto& [name, consumer] : consumers_) {
    if (!consumer.ages.buckets.empty())
      write_histogram(text, consumer.ages, options_.age_buckets, {{"consumer", name}});
  }
}

void DeliveryMetrics::write_errors(MetricsText& text) const {
  const auto write_counts = [&](Counts Consumer::*counts) {
    for (const auto& [name, consumer] : consumers_) {
      for (const auto& [error_class, count] : consumer.*counts) {
        text.sample("", {{"consumer", name}, {"class", error_class}}, count);
      }
    }
  };
  text.open("txinbox_retries_total", "counter", "Transactions that ran again after a transient error.");
  write_counts(&Consumer::retries);
  text.open("txinbox_failures_total", "counter", "Deliveries that failed, by their error.");
  write_counts(&Consumer::failures);
}

void DeliveryMetrics::write_others(MetricsText& text) const {
  const auto write_count = [&](std::uint64_t Consumer::*count) {
    for (const auto& [name, consumer] : consumers_) text.sample("", {{"consumer", name}}, consumer.*count);
  };
  text.open("txinbox_lease_takeovers_total", "counter", "Leases that had expired and were taken over.");
  write_count(&Consumer::takeovers);
  text.open("txinbox_torn_total", "counter", "Claims that a handler committed itself.");
  write_count(&Consumer::torn);
  text.open("txinbox_purged_rows_total", "counter", "Old rows that were removed.");
  write_count(&Consumer::purged);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
