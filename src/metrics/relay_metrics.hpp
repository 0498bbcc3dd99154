#pragma once

#include <cstdint>
#include <optional>

#include <txinbox/listener.hpp>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/version.hpp>

#include "metrics/metrics_text.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Counts what relays do. The caller locks.
class RelayMetrics {
 public:
  void count(const RelayEvent&);
  void set(const OutboxStatus& status) { status_ = status; }
  void write(MetricsText&) const;

 private:
  bool has_events_ = false;
  std::uint64_t published_ = 0, failed_ = 0, parked_ = 0, errors_ = 0, parts_ = 0;
  std::optional<OutboxStatus> status_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
