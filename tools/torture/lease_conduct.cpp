#include "torture/lease_conduct.hpp"

#include <array>

#include "torture/dice.hpp"

namespace txinbox::torture {
namespace {

using Share = Dice::Share<LeaseConduct>;

constexpr std::array shares{
    Share{LeaseConduct::slow, 300},         Share{LeaseConduct::renews, 1'000},
    Share{LeaseConduct::throws_first, 300}, Share{LeaseConduct::throws_uncommitted, 300},
    Share{LeaseConduct::throws_last, 500},
};

constexpr unsigned crossing_in_ten_thousand = 3'000;

// Of a contested key most handlers are late. Then one continues while its successor still waits. A late handler blocks
// its thread for longer than a lease.
constexpr unsigned contested_in_ten_thousand = 400;
constexpr unsigned late_in_ten_thousand = 7'000;

constexpr unsigned most_tries = 20;

}  // namespace

bool is_contested(std::uint64_t seed, std::uint64_t key) {
  return Dice(seed, {7, key}).chance(contested_in_ten_thousand);
}

LeaseConduct lease_conduct_of(std::uint64_t seed, const Arrival& arrival, bool is_hot) {
  if (arrival.tries > most_tries) return LeaseConduct::honest;
  Dice dice(seed, {6, arrival.key, arrival.copy, arrival.tries});
  if (is_contested(seed, arrival.key) && dice.chance(late_in_ten_thousand)) {
    return dice.chance(5'000) ? LeaseConduct::late_effect : LeaseConduct::late_completion;
  }
  if (is_hot && dice.chance(crossing_in_ten_thousand)) return LeaseConduct::crosses;
  return dice.draw(shares, LeaseConduct::honest);
}

}  // namespace txinbox::torture
