#include "telemetry/notify.hpp"

#include <string>

#include <txinbox/result.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

void notify(const std::function<void(const Event&)>& observer, Event event) noexcept {
  if (!observer) return;
  try {
    const std::string what = error_class(event.error);
    event.error_class = what;
    observer(event);
  } catch (...) {  // NOLINT(bugprone-empty-catch): documented
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
