#include <txinbox/event.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

std::string_view to_string(EventType type) noexcept {
  switch (type) {
    case EventType::consumed:
      return "consumed";
    case EventType::already_consumed:
      return "already_consumed";
    case EventType::conflict:
      return "conflict";
    case EventType::in_progress:
      return "in_progress";
    case EventType::parked:
      return "parked";
    case EventType::retry:
      return "retry";
    case EventType::torn:
      return "torn";
    case EventType::failed:
      return "failed";
    case EventType::discarded:
      return "discarded";
    case EventType::postponed:
      return "postponed";
    case EventType::lease_taken_over:
      return "lease_taken_over";
    case EventType::purged:
      return "purged";
  }
  return "unknown";
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
