#pragma once

#include <txinbox/listener.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Errors: `Error` invalid_argument if one of the listeners is null.
void check(const Listeners&);

/// These functions pass an event to the listeners, and ignore what they throw. The first one adds the class of the
/// event's error.
void notify(const Listeners&, Event) noexcept;
void notify(const Listeners&, const RunEvent&) noexcept;
void notify(const Listeners&, const RelayEvent&) noexcept;

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
