#include <txinbox/metrics.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "base/utf8.hpp"
#include "telemetry/histogram.hpp"
#include "telemetry/metrics_text.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

using detail::Bounds;
using detail::Histogram;
using detail::Labels;
using detail::MetricsText;
using namespace std::chrono_literals;

/// The events that end a delivery.
constexpr std::array outcomes = {EventType::consumed,    EventType::already_consumed, EventType::conflict,
                                 EventType::in_progress, EventType::parked,           EventType::failed,
                                 EventType::discarded,   EventType::postponed};

constexpr std::string_view other = "other";

using Counts = std::map<std::string, std::uint64_t, std::less<>>;

struct ConsumerMetrics {
  std::array<std::uint64_t, outcomes.size()> messages{};
  std::array<Histogram, outcomes.size()> durations;
  Histogram ages;
  Counts retries;
  Counts failures;
  std::uint64_t takeovers = 0;
  std::uint64_t torn = 0;
  std::uint64_t purged = 0;
};

using Consumers = std::map<std::string, ConsumerMetrics, std::less<>>;

/// Returns the entry of `name`. If there are already `most` names, or if `name` is not valid UTF-8, returns the entry
/// of "other". Text that is not UTF-8 would make the whole page unreadable.
template <typename Map>
auto& entry_of(Map& map, std::string_view name, std::size_t most) {
  if (const auto found = map.find(name); found != map.end()) return found->second;
  const bool too_many = map.size() >= most || detail::find_invalid_utf8(name) != std::string_view::npos;
  return map[std::string(too_many ? other : name)];
}

void check(std::string_view name, const Bounds& bounds) {
  const bool ascends = std::ranges::adjacent_find(bounds, std::ranges::greater_equal()) == bounds.end();
  if (!bounds.empty() && ascends && bounds.front() > 0ns) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("MetricsOptions::{} must be positive times, each greater than the one before it", name));
}

void write(MetricsText& text, const Histogram& histogram, const Bounds& bounds, const Labels& labels) {
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

/// Counts the events of all consumers. One mutex is enough: a delivery (or a batch, for all its messages) waits for the
/// disk at least once, and that takes much longer than an uncontended lock.
class Metrics::Impl {
 public:
  explicit Impl(MetricsOptions options) : options_(std::move(options)) {
    check("duration_buckets", options_.duration_buckets);
    check("age_buckets", options_.age_buckets);
  }

  void count(const Event& event) {
    const std::lock_guard lock(mutex_);
    ConsumerMetrics& consumer = entry_of(consumers_, event.consumer, options_.max_consumers);
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

  std::string text() const {
    Consumers consumers;
    {
      const std::lock_guard lock(mutex_);
      consumers = consumers_;
    }
    MetricsText text;
    write_messages(text, consumers);
    write_durations(text, consumers);
    write_errors(text, consumers);
    write_others(text, consumers);
    return text.take();
  }

 private:
  static void write_messages(MetricsText& text, const Consumers& consumers) {
    text.open("txinbox_messages_total", "counter", "Deliveries by how they ended.");
    for (const auto& [name, consumer] : consumers) {
      for (std::size_t i = 0; i < outcomes.size(); ++i) {
        text.sample("", {{"consumer", name}, {"outcome", to_string(outcomes[i])}}, consumer.messages[i]);
      }
    }
  }

  void write_durations(MetricsText& text, const Consumers& consumers) const {
    text.open("txinbox_duration_seconds", "histogram",
              "Time from the call of consume to the end of the delivery; in a batch, to the end of the batch.");
    for (const auto& [name, consumer] : consumers) {
      for (std::size_t i = 0; i < outcomes.size(); ++i) {
        if (consumer.messages[i] == 0) continue;
        write(text, consumer.durations[i], options_.duration_buckets,
              {{"consumer", name}, {"outcome", to_string(outcomes[i])}});
      }
    }
    text.open("txinbox_duplicate_age_seconds", "histogram",
              "Age of the original when its duplicate came; without those that a memory of recent keys answered.");
    for (const auto& [name, consumer] : consumers) {
      if (!consumer.ages.buckets.empty()) write(text, consumer.ages, options_.age_buckets, {{"consumer", name}});
    }
  }

  static void write_errors(MetricsText& text, const Consumers& consumers) {
    const auto write_counts = [&](Counts ConsumerMetrics::*counts) {
      for (const auto& [name, consumer] : consumers) {
        for (const auto& [error_class, count] : consumer.*counts) {
          text.sample("", {{"consumer", name}, {"class", error_class}}, count);
        }
      }
    };
    text.open("txinbox_retries_total", "counter", "Transactions that ran again after a transient error.");
    write_counts(&ConsumerMetrics::retries);
    text.open("txinbox_failures_total", "counter", "Deliveries that failed, by their error.");
    write_counts(&ConsumerMetrics::failures);
  }

  static void write_others(MetricsText& text, const Consumers& consumers) {
    const auto write_count = [&](std::uint64_t ConsumerMetrics::*count) {
      for (const auto& [name, consumer] : consumers) text.sample("", {{"consumer", name}}, consumer.*count);
    };
    text.open("txinbox_lease_takeovers_total", "counter", "Leases that had expired and were taken over.");
    write_count(&ConsumerMetrics::takeovers);
    text.open("txinbox_torn_total", "counter", "Claims that a handler committed itself.");
    write_count(&ConsumerMetrics::torn);
    text.open("txinbox_purged_rows_total", "counter", "Old rows that were removed.");
    write_count(&ConsumerMetrics::purged);
  }

  const MetricsOptions options_;
  mutable std::mutex mutex_;
  Consumers consumers_;
};

std::vector<std::chrono::nanoseconds> MetricsOptions::default_duration_buckets() {
  return {500us, 1ms, 2500us, 5ms, 10ms, 25ms, 50ms, 100ms, 250ms, 500ms, 1s, 2500ms, 5s, 10s, 30s};
}

std::vector<std::chrono::nanoseconds> MetricsOptions::default_age_buckets() {
  using std::chrono::days;
  return {1s, 10s, 1min, 10min, 1h, 6h, days(1), days(3), days(7), days(14), days(30), days(90)};
}

Metrics::Metrics(MetricsOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Metrics::~Metrics() = default;

void Metrics::operator()(const Event& event) { impl_->count(event); }

std::string Metrics::text() const { return impl_->text(); }

TXINBOX_NAMESPACE_END
}  // namespace txinbox
