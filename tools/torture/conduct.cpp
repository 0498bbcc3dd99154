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

// Only for keys with hot accounts. A deadlock is expensive: PostgreSQL looks for deadlocks only after a second.
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

namespace {

using LeaseShare = Dice::Share<LeaseConduct>;

constexpr std::array lease_shares{
    LeaseShare{LeaseConduct::slow, 300},         LeaseShare{LeaseConduct::renews, 1'000},
    LeaseShare{LeaseConduct::throws_first, 300}, LeaseShare{LeaseConduct::throws_uncommitted, 300},
    LeaseShare{LeaseConduct::throws_last, 500},
};

// Most handlers of a contested key are late. So one often continues while the next one still waits. A late handler
// blocks its thread for longer than a lease.
constexpr unsigned contested_in_ten_thousand = 400;
constexpr unsigned late_in_ten_thousand = 7'000;

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
  return dice.draw(lease_shares, LeaseConduct::honest);
}

}  // namespace txinbox::torture
