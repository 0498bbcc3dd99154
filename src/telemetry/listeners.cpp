#include "telemetry/listeners.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <txinbox/error.hpp>
#include <txinbox/result.hpp>

#include "types/handler_error.hpp"
#include "types/refused.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

Listener::~Listener() = default;

namespace detail {
namespace {

thread_local bool has_no_scopes = false;

}  // namespace

NoScopes::NoScopes() noexcept : outer_(std::exchange(has_no_scopes, true)) {}

NoScopes::~NoScopes() { has_no_scopes = outer_; }

bool NoScopes::here() noexcept { return has_no_scopes; }

void check(const Listeners& listeners) {
  if (std::ranges::find(listeners, nullptr) == listeners.end()) return;
  throw Error(ErrorCode::invalid_argument, "one of the listeners is null; leave it out");
}

void notify(const Listeners& listeners, Event event) noexcept {
  if (listeners.empty()) return;
  ignore_errors([&] {
    const std::string what = error_class(event.error);
    event.error_class = what;
    event.error = original_error(event.error);
    for (const auto& listener : listeners) ignore_errors([&] { listener->on_event(event); });
  });
}

void notify(const Listeners& listeners, const RunEvent& event) noexcept {
  for (const auto& listener : listeners) ignore_errors([&] { listener->on_run_event(event); });
}

void notify(const Listeners& listeners, const RelayEvent& event) noexcept {
  for (const auto& listener : listeners) ignore_errors([&] { listener->on_relay_event(event); });
}

void notify(const Listeners& listeners, const Publication& publication) noexcept {
  for (const auto& listener : listeners) ignore_errors([&] { listener->on_publish(publication); });
}

void outgoing(const Listeners& listeners, const OutgoingMessage& message, std::map<std::string, std::string>& headers) {
  for (const auto& listener : listeners) {
    auto changed = headers;
    ignore_errors([&] {
      listener->on_outgoing(message, changed);
      headers.swap(changed);
    });
  }
}

void begin_scope(const Listeners& listeners, const Scope& scope) noexcept {
  if (NoScopes::here()) return;
  for (const auto& listener : listeners) ignore_errors([&] { listener->on_begin(scope); });
}

void end_scope(const Listeners& listeners, const Scope& scope, const std::exception_ptr& error) noexcept {
  if (NoScopes::here()) return;
  for (auto listener = listeners.rbegin(); listener != listeners.rend(); ++listener) {
    ignore_errors([&] { (*listener)->on_end(scope, refused_by(error) ? nullptr : original_error(error)); });
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
