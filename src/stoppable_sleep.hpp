#pragma once

#include <chrono>
#include <stop_token>

#include <txinbox/version.hpp>

namespace txinbox::inline TXINBOX_ABI::detail {

/// False if the token was set before or meanwhile; it ends the sleep.
bool sleep_for(std::chrono::nanoseconds time, const std::stop_token& stop);

}  // namespace txinbox::inline TXINBOX_ABI::detail
