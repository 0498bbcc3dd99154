#include "telemetry/notify.hpp"

#include <string>

#include <txinbox/result.hpp>

#include "telemetry/scope.hpp"
#include "types/handler_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

void notify(const std::function<void(const Event&)>& observer, const Listeners& listeners, Event event) noexcept {
  if (!observer && listeners.empty()) return;
  try {
    const std::string what = error_class(event.error);
    event.error_class = what;
    event.error = original_error(event.error);
    if (observer) ignore_errors([&] { observer(event); });
    for (const auto& listener : listeners) ignore_errors([&] { listener->on_event(event); });
  } catch (...) {  // NOLINT(bugprone-empty-catch): there was no memory for the class of the error
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
