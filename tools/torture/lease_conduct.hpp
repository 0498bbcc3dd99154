#pragma once

#include <cstdint>

#include "torture/messages.hpp"

namespace txinbox::torture {

/// How a handler behaves under a lease. The accounts must balance with each of them.
enum class LeaseConduct {
  honest,
  slow,                ///< Pauses between its statements.
  renews,              ///< Renews the lease before and after its work.
  crosses,             ///< Locks the two accounts in the opposite order of the others.
  late_effect,         ///< Does its work after its lease has expired. Another worker may have done it.
  late_completion,     ///< Does its work, and completes after its lease has expired.
  throws_first,        ///< Throws before its work.
  throws_uncommitted,  ///< Throws before the commit of its own transaction.
  throws_last,         ///< Throws when its work is committed.
};

/// Whether most handlers of the key are late.
bool is_contested(std::uint64_t seed, std::uint64_t key);

/// As `conduct_of`.
LeaseConduct lease_conduct_of(std::uint64_t seed, const Arrival& arrival, bool is_hot);

}  // namespace txinbox::torture
