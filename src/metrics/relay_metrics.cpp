#include "metrics/relay_metrics.hpp"

#include <chrono>
#include <string_view>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

void write_backlog(MetricsText& text, const OutboxStatus& status) {
  text.open("txinbox_outbox_messages", "gauge", "Messages in the outbox, by their state.");
  const auto sample = [&](OutboxState state, std::int64_t count) {
    text.sample("", {{"state", to_string(state)}}, static_cast<std::uint64_t>(count));
  };
  sample(OutboxState::waiting, status.waiting);
  sample(OutboxState::failing, status.failing);
  sample(OutboxState::parked, status.parked);
  text.open("txinbox_outbox_oldest_seconds", "gauge", "The age of the oldest message that is not published.");
  text.sample("", {}, std::chrono::duration<double>(status.oldest_age).count());
  text.open("txinbox_outbox_free_parts", "gauge", "Parts of the outbox that no relay publishes.");
  text.sample("", {}, static_cast<std::uint64_t>(status.free_parts));
}

}  // namespace

void RelayMetrics::count(const RelayEvent& event) {
  has_events_ = true;
  switch (event.type) {
    case RelayEventType::published:
      published_ += event.messages;
      break;
    case RelayEventType::failed:
      ++failed_;
      break;
    case RelayEventType::parked:
      ++parked_;
      break;
    case RelayEventType::error:
      ++errors_;
      break;
    case RelayEventType::parts:
      parts_ = event.parts;
      break;
  }
}

void RelayMetrics::write(MetricsText& text) const {
  if (status_) write_backlog(text, *status_);
  if (!has_events_) return;
  const auto write = [&](std::string_view name, std::string_view type, std::string_view help, std::uint64_t value) {
    text.open(name, type, help);
    text.sample("", {}, value);
  };
  write("txinbox_relay_published_total", "counter", "Messages that the broker has confirmed.", published_);
  write("txinbox_relay_failures_total", "counter", "How often a message was not confirmed and is tried again.",
        failed_);
  write("txinbox_relay_parked_total", "counter", "Messages that were given up.", parked_);
  write("txinbox_relay_errors_total", "counter", "How often the publisher threw, or the database failed.", errors_);
  write("txinbox_relay_parts", "gauge", "Parts of the outbox that this relay publishes.", parts_);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
