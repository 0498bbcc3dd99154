#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <unordered_set>

#include <txinbox/message.hpp>

namespace txinbox::bench {

/// The key for a number between 0 and 2^60. Keys have the same order as their numbers.
std::string spread_key(std::uint64_t place);

inline constexpr std::uint64_t spread_range = std::uint64_t{1} << 60;

/// Messages with random keys, distributed over a table that `fill` filled with this number of rows. No row has one of
/// these keys. Each run uses the same keys.
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
