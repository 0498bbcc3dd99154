#include <txinbox/metrics.hpp>

#include <mutex>
#include <utility>

#include "metrics/delivery_metrics.hpp"
#include "metrics/metrics_text.hpp"
#include "metrics/relay_metrics.hpp"
#include "metrics/run_metrics.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

using namespace std::chrono_literals;

/// One mutex is enough: a delivery (or a batch, for all its messages) waits for the disk at least once, and that takes
/// much longer than an uncontended lock.
class Metrics::Impl {
 public:
  struct Counts {
    detail::DeliveryMetrics deliveries;
    detail::RunMetrics run = {};
    detail::RelayMetrics relay = {};
  };

  explicit Impl(MetricsOptions options) : counts_{.deliveries = detail::DeliveryMetrics(std::move(options))} {}

  template <class Change>
  void change(const Change& change) {
    const std::lock_guard lock(mutex_);
    change(counts_);
  }

  Counts copy() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  mutable std::mutex mutex_;
  Counts counts_;
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

void Metrics::on_event(const Event& event) {
  impl_->change([&](Impl::Counts& counts) { counts.deliveries.count(event); });
}

void Metrics::on_run_event(const RunEvent& event) {
  impl_->change([&](Impl::Counts& counts) { counts.run.count(event); });
}

void Metrics::on_relay_event(const RelayEvent& event) {
  impl_->change([&](Impl::Counts& counts) { counts.relay.count(event); });
}

void Metrics::set(const OutboxStatus& status) {
  impl_->change([&](Impl::Counts& counts) { counts.relay.set(status); });
}

std::string Metrics::text() const {
  const Impl::Counts counts = impl_->copy();
  detail::MetricsText text;
  counts.deliveries.write(text);
  counts.run.write(text);
  counts.relay.write(text);
  return text.take();
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
