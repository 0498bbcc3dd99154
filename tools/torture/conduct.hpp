#pragma once

#include <cstdint>

#include "torture/messages.hpp"

namespace txinbox::torture {

/// How a handler behaves in one run. All of them must balance: docs/reference/guard.md says of each that the
/// message is consumed rightly, or that everything is undone, on every database in a pool.
enum class Conduct {
  honest,
  slow,                   ///< Pauses between its statements.
  crosses,                ///< Locks the two accounts in the opposite order of the others.
  hogs,                   ///< Keeps its locks for longer than others wait for them.
  uses_savepoint,         ///< Sets a savepoint, writes, rolls back to it, and goes on.
  throws_first,           ///< Throws before its SQL.
  throws_last,            ///< Throws when all of its SQL was run.
  swallows_error,         ///< Runs SQL that fails, says nothing and goes on.
  swallows_deadlock,      ///< Crosses, says nothing when it fails and goes on.
  rolls_back_and_throws,  ///< Ends the transaction, and says that something is wrong.
  rolls_back_and_begins,  ///< Ends the transaction, and goes on in one of its own.
  closes_session,         ///< Runs all of its SQL and closes the connection.
};

/// The conduct of an arrival's handler: decided by the seed, the same in each run of one `consume`, where
/// a batch that fails runs again to find the one to blame.
///
/// A copy that was delivered often is handled honestly at last: the storm must end. So is one whose
/// transaction ran so often.
///
/// `is_hot`: the key's accounts are those on which handlers cross each other.
Conduct conduct_of(std::uint64_t seed, const Arrival& arrival, bool is_hot, int attempt);

}  // namespace txinbox::torture
