#pragma once

/// @file
/// Metrics of `run` in the text format of Prometheus.

#include <memory>
#include <string>

#include <txinbox/run.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// Counts what `run` does at the broker, in the text format of Prometheus. It is an observer of `run`, as `Metrics` is
/// one of the consumer:
///
///     txinbox::RunMetrics metrics;
///     txinbox::run(source, consumer, message_of, handler, {.observer = std::ref(metrics)});
///
/// It must outlive the calls of `run` that it observes. One object is enough for all of them. A page for Prometheus is
/// `Metrics::text` and this class's `text`, one after the other. docs/operations/watching.md lists what it counts. It
/// never stores or shows a business key.
///
/// @threads any number.
class RunMetrics {
 public:
  RunMetrics();
  RunMetrics(const RunMetrics&) = delete;
  RunMetrics& operator=(const RunMetrics&) = delete;
  ~RunMetrics();

  /// Counts the event.
  void operator()(const RunEvent& event);

  /// All counts so far, in the text exposition format 0.0.4.
  std::string text() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
