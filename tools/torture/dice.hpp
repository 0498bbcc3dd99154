#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace txinbox::torture {

/// Random numbers. A seed and the coordinates of a decision determine them. So each process and each rerun makes the
/// same decisions without communication. SplitMix64, after G. L. Steele, D. Lea, C. H. Flood, "Fast Splittable
/// Pseudorandom Number Generators" (OOPSLA 2014).
class Dice {
 public:
  /// A value and its probability in ten thousand.
  template <class T>
  struct Share {
    T value;
    unsigned in_ten_thousand;
  };

  Dice(std::uint64_t seed, std::initializer_list<std::uint64_t> coordinates) : state_(seed) {
    for (const std::uint64_t coordinate : coordinates) state_ = next() ^ coordinate;
  }

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  /// From 0 to n - 1. n is small, so the bias of the remainder does not matter.
  std::uint64_t below(std::uint64_t n) { return next() % n; }

  bool chance(std::uint64_t in_ten_thousand) { return below(10'000) < in_ten_thousand; }

  template <class T, std::size_t N>
  T pick(const std::array<T, N>& values) {
    return values[below(N)];
  }

  /// One of the values, by their probabilities; `otherwise` for the rest of the probability.
  template <class T, std::size_t N>
  T draw(const std::array<Share<T>, N>& shares, T otherwise) {
    std::uint64_t thrown = below(10'000);
    for (const Share<T>& share : shares) {
      if (thrown < share.in_ten_thousand) return share.value;
      thrown -= share.in_ten_thousand;
    }
    return otherwise;
  }

 private:
  std::uint64_t state_;
};

}  // namespace txinbox::torture
