#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace txinbox::cli {

/// The prefetch of RabbitMQ for a `run` that holds at most `held` messages. Another 600 may wait for a retry.
constexpr std::uint16_t prefetch_for(std::size_t held) noexcept {
  constexpr std::size_t waiting = 600;
  constexpr std::size_t most = std::numeric_limits<std::uint16_t>::max();
  return static_cast<std::uint16_t>(std::min(held + waiting, most));
}

}  // namespace txinbox::cli
