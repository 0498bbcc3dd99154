#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <unordered_set>

#include <txinbox/message.hpp>

namespace txinbox::bench {

/// A key at a place between 0 and 2^60; in the order of the places.
std::string spread_key(std::uint64_t place);

inline constexpr std::uint64_t spread_range = std::uint64_t{1} << 60;

/// Messages with random keys all over a table that `fill` filled with that many rows, none of which is there.
/// The same ones in each run.
class SpreadKeys {
 public:
  explicit SpreadKeys(long long rows) : step_(spread_range / static_cast<std::uint64_t>(rows)) {}

  Message next();

 private:
  std::uint64_t step_;
  std::mt19937_64 random_{20'260'101};
  std::unordered_set<std::uint64_t> used_;
};

}  // namespace txinbox::bench
