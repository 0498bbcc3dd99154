#include "spread_keys.hpp"

#include <fmt/format.h>

namespace txinbox::bench {

std::string spread_key(std::uint64_t place) { return fmt::format("{:015x}", place); }

Message SpreadKeys::next() {
  std::uniform_int_distribution<std::uint64_t> anywhere(0, spread_range - 1);
  for (;;) {
    const auto place = anywhere(random_);
    // The keys of existing rows are multiples of the step.
    if (place % step_ != 0 && used_.insert(place).second) return {.business_key = spread_key(place)};
  }
}

}  // namespace txinbox::bench
