#pragma once

#include <cstdint>

namespace txinbox::torture {

/// What a worker met while it worked at one assignment. What a killed worker met since its last reply
/// is not known.
struct Counters {
  std::uint64_t retries = 0;            ///< Transactions that the library ran again.
  std::uint64_t deadlocks = 0;          ///< Also those that a handler swallowed.
  std::uint64_t lock_timeouts = 0;      ///< SQLite's "database is locked" too.
  std::uint64_t connections_lost = 0;   ///< Or refused.
  std::uint64_t transactions_lost = 0;  ///< The guard's: the handler had ended the transaction.

  Counters& operator+=(const Counters& other) {
    retries += other.retries;
    deadlocks += other.deadlocks;
    lock_timeouts += other.lock_timeouts;
    connections_lost += other.connections_lost;
    transactions_lost += other.transactions_lost;
    return *this;
  }
};

}  // namespace txinbox::torture
