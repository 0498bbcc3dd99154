#pragma once

#include <cstdint>
#include <string>

namespace soci {
class session;
}

namespace txinbox::bench {

/// Fills the inbox with that many consumed rows of one consumer, whose keys are spread evenly over all
/// that `spread_key` gives; then has the server write them out, so that it is at rest.
void fill(soci::session&, const std::string& consumer, long long rows);

/// A key of the same form, at a place between 0 and 2^60.
std::string spread_key(std::uint64_t place);

inline constexpr std::uint64_t spread_range = std::uint64_t{1} << 60;

}  // namespace txinbox::bench
