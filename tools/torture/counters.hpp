#pragma once

#include <cstdint>

namespace txinbox::torture {

/// What a worker counted in one assignment. The counts of a killed worker since its last reply are lost.
struct Counters {
  std::uint64_t retries = 0;            ///< Transactions that the library ran again.
  std::uint64_t deadlocks = 0;          ///< Also those that a handler swallowed.
  std::uint64_t lock_timeouts = 0;      ///< SQLite's "database is locked" too.
  std::uint64_t connections_lost = 0;   ///< Or refused.
  std::uint64_t transactions_lost = 0;  ///< The guard's: the handler had ended the transaction.
  std::uint64_t leases_taken_over = 0;
  std::uint64_t leases_lost = 0;      ///< Another had taken over before the completion.
  std::uint64_t effects_refused = 0;  ///< By the fence.

  Counters& operator+=(const Counters& other) {
    retries += other.retries;
    deadlocks += other.deadlocks;
    lock_timeouts += other.lock_timeouts;
    connections_lost += other.connections_lost;
    transactions_lost += other.transactions_lost;
    leases_taken_over += other.leases_taken_over;
    leases_lost += other.leases_lost;
    effects_refused += other.effects_refused;
    return *this;
  }
};

}  // namespace txinbox::torture
