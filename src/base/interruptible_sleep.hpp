#pragma once

#include <chrono>
#include <stop_token>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Sleeps until the time is over or a stop is requested. Returns false if a stop was requested.
bool sleep_for(std::chrono::nanoseconds time, const std::stop_token& stop);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
