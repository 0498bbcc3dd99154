#pragma once

#include <memory>
#include <set>
#include <string>

#include <soci/soci.h>
#include <txinbox/pool.hpp>

#include "support/effects.hpp"

namespace txinbox::test {

/// A migrated database with effects, on the primary that tests/failover.sh has started, and on its replica. The primary
/// is killed once, and does not start again.
class Pair : public EffectDatabase {
 public:
  Pool primary(PoolOptions = {}) const;
  Pool replica(PoolOptions = {}) const;

  /// The URL of the same database on the replica, for the user of `primary_url`.
  std::string on_replica(const std::string& primary_url) const;
  std::unique_ptr<soci::session> replica_session() const;

  /// Waits until the replica has all commits that the primary has now.
  void wait_for_replica() const;

  /// Stops the replication: later commits of the primary do not reach the replica.
  void part() const;

  /// Sends SIGKILL to all processes of the primary. Then the replica takes over.
  void fail_over() const;

  /// The keys that are consumed on the replica, and the keys that took effect there. The second function returns each
  /// key as many times as it took effect.
  std::multiset<std::string> consumed_on_replica() const;
  std::multiset<std::string> effects_on_replica() const;
};

}  // namespace txinbox::test
