#pragma once

#include <cstdint>

#include "torture/messages.hpp"

namespace txinbox::torture {

/// How a handler behaves in one run. The accounts must balance with each of them: docs/reference/guard.md says that on
/// every database in a pool the message is consumed, or everything is undone.
enum class Conduct {
  honest,
  slow,                   ///< Pauses between its statements.
  crosses,                ///< Locks the two accounts in the opposite order of the others.
  holds_locks,            ///< Holds its locks for longer than others wait for them.
  uses_savepoint,         ///< Sets a savepoint, writes, rolls back to it, and goes on.
  throws_first,           ///< Throws before its SQL.
  throws_last,            ///< Throws when all of its SQL was run.
  swallows_error,         ///< Ignores an error of its SQL, and goes on.
  swallows_deadlock,      ///< Crosses, ignores the error, and goes on.
  rolls_back_and_throws,  ///< Rolls back the transaction, then throws.
  rolls_back_and_begins,  ///< Rolls back the transaction, and goes on in one of its own.
  closes_session,         ///< Runs all of its SQL and closes the connection.
};

/// The conduct of an arrival's handler. The seed decides it. It is the same in each run of one `consume`, because a
/// batch that fails runs again to find the message that fails.
///
/// A copy that was delivered many times gets an honest handler, so that the storm ends. So does a transaction that ran
/// many times.
///
/// `is_hot`: the key's accounts are those on which handlers cross each other.
Conduct conduct_of(std::uint64_t seed, const Arrival& arrival, bool is_hot, int attempt);

}  // namespace txinbox::torture
