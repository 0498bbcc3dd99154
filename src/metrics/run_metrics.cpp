#include "metrics/run_metrics.hpp"

#include "metrics/entry.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

void RunMetrics::count(const RunEvent& event) {
  Counts& counts = entry_of(entry_of(counts_, event.source), event.consumer);
  switch (event.type) {
    case RunEventType::acknowledged:
      counts.acknowledged += event.count;
      break;
    case RunEventType::retry:
      ++counts.retries;
      break;
    case RunEventType::dead_letter:
      ++entry_of(counts.dead_letters, event.reason);
      break;
    case RunEventType::dead_letter_failed:
      ++counts.dead_letter_failures;
      break;
    case RunEventType::unavailable:
      ++counts.outages;
      break;
    case RunEventType::dropped:
      counts.dropped += event.count;
      break;
    case RunEventType::source:
      break;
    case RunEventType::status:
      counts.status = *event.status;
      break;
    case RunEventType::tripped:
      ++counts.trips;
      counts.is_tripped = true;
      break;
    case RunEventType::resumed:
      counts.is_tripped = false;
      break;
    case RunEventType::paused:
    case RunEventType::unpaused:
      counts.is_paused = event.type == RunEventType::paused;
      break;
    case RunEventType::held:
      ++counts.held;
      break;
  }
}

template <class ValueOf>
void RunMetrics::write_all(MetricsText& text, std::string_view name, std::string_view type, std::string_view help,
                           const ValueOf& value_of) const {
  text.open(name, type, help);
  for (const auto& [source, consumers] : counts_) {
    for (const auto& [consumer, counts] : consumers) {
      const std::optional<std::uint64_t> value = value_of(counts);
      if (value) text.sample("", {{"source", source}, {"consumer", consumer}}, *value);
    }
  }
}

void RunMetrics::write(MetricsText& text) const {
  if (counts_.empty()) return;
  const auto counter = [&](std::string_view name, std::string_view help, std::uint64_t Counts::*count) {
    write_all(text, name, "counter", help, [&](const Counts& counts) { return std::optional(counts.*count); });
  };
  const auto gauge = [&](std::string_view name, std::string_view help, const auto& value_of) {
    write_all(text, name, "gauge", help, [&](const Counts& counts) {
      return counts.status ? std::optional<std::uint64_t>(value_of(*counts.status)) : std::nullopt;
    });
  };
  counter("txinbox_source_acknowledged_total", "Messages that were acknowledged at the broker.", &Counts::acknowledged);
  counter("txinbox_source_retries_total", "How often a message had to run again.", &Counts::retries);
  counter("txinbox_source_dropped_total", "Messages that the broker has taken back.", &Counts::dropped);
  counter("txinbox_source_outages_total", "How often everything waited for the database.", &Counts::outages);
  counter("txinbox_source_dead_letter_failures_total", "Dead letters that the broker did not confirm.",
          &Counts::dead_letter_failures);
  counter("txinbox_source_trips_total", "How often the handler has failed for so many keys that run waits for it.",
          &Counts::trips);
  write_all(text, "txinbox_source_tripped", "gauge", "1: run waits until the handler works again.",
            [](const Counts& counts) { return std::optional<std::uint64_t>(counts.is_tripped ? 1 : 0); });
  write_all(text, "txinbox_source_paused", "gauge", "1: an operator has paused the consumer.",
            [](const Counts& counts) { return std::optional<std::uint64_t>(counts.is_paused ? 1 : 0); });
  counter("txinbox_source_held_total", "Parked messages that keep their place until an operator has decided.",
          &Counts::held);
  write_dead_letters(text);
  gauge("txinbox_source_connected", "1: there is a connection to the broker.",
        [](const SourceStatus& status) { return status.connected ? 1 : 0; });
  gauge("txinbox_source_lanes", "Lanes of the broker that this source has, such as partitions.",
        [](const SourceStatus& status) { return status.lanes; });
  gauge("txinbox_source_lag", "Messages that wait at the broker.",
        [](const SourceStatus& status) { return status.lag; });
  write_all(
      text, "txinbox_source_reconnects_total", "counter", "New connections to the broker after a loss.",
      [](const Counts& counts) { return counts.status ? std::optional(counts.status->reconnects) : std::nullopt; });
}

void RunMetrics::write_dead_letters(MetricsText& text) const {
  text.open("txinbox_source_dead_letters_total", "counter", "Confirmed dead letters, by their reason.");
  for (const auto& [source, consumers] : counts_) {
    for (const auto& [consumer, counts] : consumers) {
      for (const auto& [reason, count] : counts.dead_letters) {
        text.sample("", {{"source", source}, {"consumer", consumer}, {"reason", reason}}, count);
      }
    }
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
