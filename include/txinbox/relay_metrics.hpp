#pragma once

/// @file
/// Metrics of the outbox in the text format of Prometheus.

#include <memory>
#include <string>

#include <txinbox/outbox_messages.hpp>
#include <txinbox/outbox_relay.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// Counts what an `OutboxRelay` does, in the text format of Prometheus. It is an observer of the relay:
///
///     txinbox::RelayMetrics metrics;
///     txinbox::OutboxRelay relay(pool, publish, {.observer = std::ref(metrics)});
///
/// It must outlive the relays that it observes. If it observes several, their counts are summed. But
/// `txinbox_relay_parts` is then that of the relay whose number has changed last. docs/operations/watching.md lists
/// what it counts. It never stores or shows a key.
///
/// @threads any number.
class RelayMetrics {
 public:
  RelayMetrics();
  RelayMetrics(const RelayMetrics&) = delete;
  RelayMetrics& operator=(const RelayMetrics&) = delete;
  ~RelayMetrics();

  /// Counts the event.
  void operator()(const RelayEvent& event);

  /// Sets the gauges of the backlog, from a call of `outbox_status`. The relay does not count the backlog itself,
  /// because counting reads the whole outbox. Before the first call, `text` has no such gauges.
  void set(const OutboxStatus& status);

  /// All counts so far, in the text exposition format 0.0.4.
  std::string text() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
