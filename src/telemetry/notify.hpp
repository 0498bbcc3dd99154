#pragma once

#include <functional>

#include <txinbox/event.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Hands the event to an observer, if there is one, with the class of its error; drops what that throws.
void notify(const std::function<void(const Event&)>& observer, Event event) noexcept;

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
