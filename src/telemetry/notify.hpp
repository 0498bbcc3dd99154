#pragma once

#include <functional>

#include <txinbox/event.hpp>
#include <txinbox/listener.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Passes the event, with the class of its error, to the observer, if there is one, and to the listeners. Ignores what
/// they throw.
void notify(const std::function<void(const Event&)>& observer, const Listeners& listeners, Event event) noexcept;

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
