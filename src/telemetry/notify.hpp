#pragma once

#include <functional>

#include <txinbox/event.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Passes the event, with the class of its error, to the observer, if there is one. Ignores what the observer throws.
void notify(const std::function<void(const Event&)>& observer, Event event) noexcept;

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
