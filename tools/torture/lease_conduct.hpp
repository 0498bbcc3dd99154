#pragma once

#include <cstdint>

#include "torture/messages.hpp"

namespace txinbox::torture {

/// How a handler behaves under a lease. All of them must balance.
enum class LeaseConduct {
  honest,
  slow,                ///< Pauses between its statements.
  renews,              ///< Renews the lease before and after its work.
  crosses,             ///< Locks the two accounts in the opposite order of the others.
  late_effect,         ///< Outlives its lease, and does its work then: another may have done it.
  late_completion,     ///< Does its work, and outlives its lease.
  throws_first,        ///< Throws before its work.
  throws_uncommitted,  ///< Throws before the commit of its own transaction.
  throws_last,         ///< Throws when its work is committed.
};

/// Whether most handlers of the key are late, each in its own way.
bool is_contested(std::uint64_t seed, std::uint64_t key);

/// As `conduct_of`.
LeaseConduct lease_conduct_of(std::uint64_t seed, const Arrival& arrival, bool is_hot);

}  // namespace txinbox::torture
