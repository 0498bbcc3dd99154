#pragma once

/// @file
/// Metrics in the text format of Prometheus.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/listener.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

struct OutboxStatus;

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

/// Counters and histograms of what consumers, purges, `run` and relays do, in the text format of Prometheus. It is a
/// listener, and one object is enough for a process:
///
///     const auto metrics = std::make_shared<txinbox::Metrics>();
///     txinbox::TxConsumer consumer(pool, "order-service", {.listeners = {metrics}});
///     txinbox::OutboxRelay relay(pool, publish, {.listeners = {metrics}});
///     txinbox::run(source, consumer, message_of, handler);  // it tells the consumer's listeners
///
/// docs/operations/watching.md lists what it counts. It never stores or shows a business key. It allocates memory only
/// for the first event of a consumer, a source, an outcome, a reason or an error class.
///
/// The counts of several relays are summed. But `txinbox_relay_parts` is that of the relay whose number has changed
/// last.
///
/// @threads any number.
class Metrics : public Listener {
 public:
  /// The Content-Type of an HTTP response that holds `text`.
  static constexpr std::string_view content_type = "text/plain; version=0.0.4; charset=utf-8";

  /// The object begins without consumers. It counts a consumer from its first event on.
  ///
  /// @errors `Error` invalid_argument for buckets that are empty, not positive or not ascending.
  explicit Metrics(MetricsOptions options = {});
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics() override;

  void on_event(const Event& event) override;             ///< Counts the event of a consumer or a purge.
  void on_run_event(const RunEvent& event) override;      ///< Counts the event of `run`.
  void on_relay_event(const RelayEvent& event) override;  ///< Counts the event of a relay.

  /// Sets the gauges of the outbox's backlog, from a call of `outbox_status`. A relay does not count the backlog
  /// itself, because counting reads the whole outbox. Before the first call, `text` has no such gauges.
  void set(const OutboxStatus& status);

  /// All counts so far, in the text exposition format 0.0.4. It has the metrics of `run` after the first event of
  /// `run`, and those of relays after the first event of a relay.
  std::string text() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

TXINBOX_API_END
}  // namespace txinbox
