#pragma once

/// @file
/// Metrics in the text format of Prometheus.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/event.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// The buckets and the size limits of `Metrics`.
struct MetricsOptions {
  /// The upper bounds of the buckets in which durations are counted: positive and ascending.
  std::vector<std::chrono::nanoseconds> duration_buckets = default_duration_buckets();

  /// The upper bounds of the buckets for the ages of originals at the time of their duplicates: positive and ascending.
  std::vector<std::chrono::nanoseconds> age_buckets = default_age_buckets();

  /// How many consumers have counters of their own. Further consumers are counted under "other", so the text cannot
  /// grow without limit.
  std::size_t max_consumers = 100;

  /// How many classes of errors each consumer counts separately. Further classes are counted under "other".
  std::size_t max_error_classes = 30;

  static std::vector<std::chrono::nanoseconds> default_duration_buckets();  ///< 0.5 ms to 30 s.
  static std::vector<std::chrono::nanoseconds> default_age_buckets();       ///< 1 s to 90 days.
};

/// Counters and histograms of what consumers do, in the text format of Prometheus. It is an observer:
///
///     txinbox::Metrics metrics;
///     txinbox::TxConsumer consumer(pool, "order-service", {.observer = std::ref(metrics)});
///
/// It must outlive the consumers that it observes. One object is enough for all consumers of a process.
/// docs/operations/watching.md lists what it counts. It never stores or shows a business key.
///
/// @threads any number.
class Metrics {
 public:
  /// The Content-Type of an HTTP response that holds `text`.
  static constexpr std::string_view content_type = "text/plain; version=0.0.4; charset=utf-8";

  /// The object begins without consumers. It counts a consumer from its first event on.
  ///
  /// @errors `Error` invalid_argument for buckets that are empty, not positive or not ascending.
  explicit Metrics(MetricsOptions options = {});
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics();

  /// Counts the event. It allocates memory only for the first event of a consumer, an outcome or an error class.
  void operator()(const Event& event);

  /// All counts so far, in the text exposition format 0.0.4.
  std::string text() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
