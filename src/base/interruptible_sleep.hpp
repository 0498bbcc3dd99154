#pragma once

#include <chrono>
#include <stop_token>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// False if the token was set before or meanwhile; it ends the sleep.
bool sleep_for(std::chrono::nanoseconds time, const std::stop_token& stop);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
