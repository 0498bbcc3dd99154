#pragma once

#include <memory>
#include <set>
#include <string>

#include <soci/soci.h>
#include <txinbox/pool.hpp>

#include "support/effects.hpp"

namespace txinbox::test {

/// A migrated database with effects, on the primary that tests/failover.sh has started, and on its
/// replica. The primary dies once, and stays dead.
class Pair : public EffectDatabase {
 public:
  Pool primary(PoolOptions = {}) const;
  Pool replica() const;
  std::unique_ptr<soci::session> replica_session() const;

  /// Until the replica has what the primary has committed by now.
  void wait_for_replica() const;

  /// Lets the primary's further commits not reach the replica.
  void part() const;

  /// SIGKILL to all of its processes; then the replica takes over.
  void fail_over() const;

  /// The keys that the replica knows as consumed, and those that took effect there, each as often as it
  /// did.
  std::multiset<std::string> consumed_on_replica() const;
  std::multiset<std::string> effects_on_replica() const;

 private:
  std::string replica_url() const;
};

}  // namespace txinbox::test
