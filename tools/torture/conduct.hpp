#pragma once

#include <cstdint>

#include "torture/messages.hpp"

namespace txinbox::torture {

/// How a handler behaves in one run. With each of these, the accounts must balance: in a pool, every database either
/// consumes the message or undoes everything (docs/reference/guard.md).
enum class Conduct {
  honest,
  slow,                   ///< Pauses between its statements.
  crosses,                ///< Locks the two accounts in the opposite order from other handlers.
  holds_locks,            ///< Holds its locks for longer than others wait for them.
  uses_savepoint,         ///< Sets a savepoint, writes, rolls back to it, and goes on.
  throws_first,           ///< Throws before its SQL.
  throws_last,            ///< Throws after all of its SQL.
  swallows_error,         ///< Ignores an error of its SQL, and goes on.
  swallows_deadlock,      ///< Locks in the opposite order, ignores the error, and goes on.
  rolls_back_and_throws,  ///< Rolls back the transaction, then throws.
  rolls_back_and_begins,  ///< Rolls back the transaction, begins another one, and goes on in it.
  closes_session,         ///< Runs all of its SQL and closes the connection.
};

/// How an arrival's handler behaves. The seed decides this. It is the same in each run of one `consume`, because a
/// failed batch runs again to find the message that fails.
///
/// If a copy was delivered many times, its handler is honest, so that the storm ends. The same is true after many
/// attempts of a transaction.
///
/// `is_hot`: the key's accounts are hot, so handlers lock them in opposite orders.
Conduct conduct_of(std::uint64_t seed, const Arrival& arrival, bool is_hot, int attempt);

/// How a handler behaves under a lease. With each of these, the accounts must balance.
enum class LeaseConduct {
  honest,
  slow,                ///< Pauses between its statements.
  renews,              ///< Renews the lease before and after its work.
  crosses,             ///< Locks the two accounts in the opposite order from other handlers.
  late_effect,         ///< Does its work after its lease has expired. Another worker may have done it.
  late_completion,     ///< Does its work, and completes after its lease has expired.
  throws_first,        ///< Throws before its work.
  throws_uncommitted,  ///< Throws before the commit of its own transaction.
  throws_last,         ///< Throws after the commit of its own transaction.
};

/// Whether most handlers of the key are late.
bool is_contested(std::uint64_t seed, std::uint64_t key);

/// As `conduct_of`.
LeaseConduct lease_conduct_of(std::uint64_t seed, const Arrival& arrival, bool is_hot);

}  // namespace txinbox::torture
