#pragma once

#include <cstdint>
#include <exception>

namespace txinbox::torture {

/// The counts of a worker during one assignment. If a worker is killed, its counts since its last reply are lost.
struct Counters {
  std::uint64_t retries = 0;            ///< Transactions that the library ran again.
  std::uint64_t deadlocks = 0;          ///< Including those that a handler ignored.
  std::uint64_t lock_timeouts = 0;      ///< Including SQLite's "database is locked".
  std::uint64_t connections_lost = 0;   ///< Lost or refused.
  std::uint64_t transactions_lost = 0;  ///< The guard found that the handler had ended the transaction.
  std::uint64_t leases_taken_over = 0;
  std::uint64_t leases_lost = 0;      ///< Another worker had taken over the lease before the completion.
  std::uint64_t effects_refused = 0;  ///< The resource refused them because of the fence.

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

/// Counts an error of the database by its code. Other errors are not counted.
void count(const std::exception_ptr& error, Counters& met);

}  // namespace txinbox::torture
