#include "telemetry/scope.hpp"

#include "types/handler_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

Listener::~Listener() = default;

namespace detail {

void begin_scope(const Listeners& listeners, const Scope& scope) noexcept {
  for (const auto& listener : listeners) ignore_errors([&] { listener->on_begin(scope); });
}

void end_scope(const Listeners& listeners, const Scope& scope, const std::exception_ptr& error) noexcept {
  for (auto listener = listeners.rbegin(); listener != listeners.rend(); ++listener) {
    ignore_errors([&] { (*listener)->on_end(scope, original_error(error)); });
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
