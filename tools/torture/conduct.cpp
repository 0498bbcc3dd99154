#include "torture/conduct.hpp"

#include <array>

#include "torture/dice.hpp"

namespace txinbox::torture {
namespace {

using Share = Dice::Share<Conduct>;

// Two are rare: holds_locks blocks others for as long as a lock time-out, closes_session costs a connection.
constexpr std::array shares{
    Share{Conduct::slow, 300},
    Share{Conduct::holds_locks, 4},
    Share{Conduct::uses_savepoint, 300},
    Share{Conduct::throws_first, 300},
    Share{Conduct::throws_last, 500},
    Share{Conduct::swallows_error, 200},
    Share{Conduct::rolls_back_and_throws, 100},
    Share{Conduct::rolls_back_and_begins, 100},
    Share{Conduct::closes_session, 20},
};

// Of the keys with hot accounts. PostgreSQL looks for a deadlock only after a second.
constexpr unsigned crossing_in_ten_thousand = 3'000;

constexpr unsigned most_tries = 20;
constexpr int most_attempts = 10;

}  // namespace

Conduct conduct_of(std::uint64_t seed, const Arrival& arrival, bool is_hot, int attempt) {
  if (arrival.tries > most_tries || attempt > most_attempts) return Conduct::honest;
  Dice dice(seed, {2, arrival.key, arrival.copy, arrival.tries});
  if (is_hot) {
    if (dice.chance(crossing_in_ten_thousand)) return Conduct::crosses;
    if (dice.chance(crossing_in_ten_thousand / 2)) return Conduct::swallows_deadlock;
  }
  return dice.draw(shares, Conduct::honest);
}

}  // namespace txinbox::torture
