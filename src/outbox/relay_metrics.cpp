#include <txinbox/relay_metrics.hpp>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>

#include "telemetry/metrics_text.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

class RelayMetrics::Impl {
 public:
  void count(const RelayEvent& event) {
    const std::lock_guard lock(mutex_);
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

  void set(const OutboxStatus& status) {
    const std::lock_guard lock(mutex_);
    status_ = status;
  }

  std::string text() const {
    const std::lock_guard lock(mutex_);
    detail::MetricsText text;
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
    if (status_) write_backlog(text, *status_);
    return text.take();
  }

 private:
  static void write_backlog(detail::MetricsText& text, const OutboxStatus& status) {
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

  mutable std::mutex mutex_;
  std::uint64_t published_ = 0, failed_ = 0, parked_ = 0, errors_ = 0, parts_ = 0;
  std::optional<OutboxStatus> status_;
};

RelayMetrics::RelayMetrics() : impl_(std::make_unique<Impl>()) {}
RelayMetrics::~RelayMetrics() = default;

void RelayMetrics::operator()(const RelayEvent& event) { impl_->count(event); }

void RelayMetrics::set(const OutboxStatus& status) { impl_->set(status); }

std::string RelayMetrics::text() const { return impl_->text(); }

TXINBOX_NAMESPACE_END
}  // namespace txinbox
