#pragma once

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

struct MetricsOptions {
  /// The upper bounds of the buckets in which durations and ages are counted, ascending.
  std::vector<std::chrono::nanoseconds> duration_buckets = default_duration_buckets();
  std::vector<std::chrono::nanoseconds> age_buckets = default_age_buckets();

  /// How many consumers are told apart, and for each of them how many classes of errors. What comes after
  /// them is counted under "other", so that no event can make the text grow without end.
  std::size_t max_consumers = 100;
  std::size_t max_error_classes = 30;

  static std::vector<std::chrono::nanoseconds> default_duration_buckets();  ///< 0.5 ms to 30 s.
  static std::vector<std::chrono::nanoseconds> default_age_buckets();       ///< 1 s to 90 days.
};

/// Counters and histograms of what consumers do, in Prometheus' text format. It is an observer:
///
///     txinbox::Metrics metrics;
///     txinbox::TxConsumer consumer(pool, "order-service", {.observer = std::ref(metrics)});
///
/// and must outlive the consumers that it observes; one for all of a process will do. docs/operations/watching.md
/// lists what it counts. It keeps and shows no business key.
///
/// Errors:  the constructor throws `Error` invalid_argument for buckets that do not ascend.
/// Threads: any number.
class Metrics {
 public:
  /// What the text is, for the Content-Type of an HTTP response.
  static constexpr std::string_view content_type = "text/plain; version=0.0.4; charset=utf-8";

  explicit Metrics(MetricsOptions options = {});
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics();

  /// Counts the event. Allocates only for the first event of a consumer, outcome or error class.
  void operator()(const Event& event);

  /// What was counted so far, in the text exposition format 0.0.4.
  std::string text() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
