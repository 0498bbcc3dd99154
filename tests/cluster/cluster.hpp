#pragma once

#include <memory>
#include <string>

#include <soci/soci.h>
#include <txinbox/pool.hpp>

#include "support/effects.hpp"

namespace txinbox::test {

/// The nodes of the cluster that tests/galera.sh has started, numbered from 1.
inline constexpr int nodes = 3;

/// What tests/galera_node.sh does: kill, start, freeze, thaw.
void node_command(const std::string& act, int node);

/// Takes a node out of the group without ending it: its clients stay connected, and it refuses them.
void cut_off(int node);
void let_back(int node);

/// Until the node is a member of the whole cluster, and has what the others have.
void wait_until_synced(int node);

/// Until the node, or the rest of them, has noticed.
void wait_until_refusing(int node);
void wait_until_cluster_has(int members, int seen_by);

/// A migrated database on all nodes, with the effects of EffectDatabase, whose table has no key at all,
/// and the table `account`, of ten rows that everybody wants. Waits for the whole cluster first.
class ClusterDatabase : public EffectDatabase {
 public:
  ClusterDatabase();

  const std::string& schema() const { return schema_; }
  std::string url(int node) const;
  Pool pool(int node, PoolOptions = {}) const;
  std::unique_ptr<soci::session> session(int node) const;

  using EffectDatabase::number;
  using EffectDatabase::text;

  /// Of what the whole cluster has committed by now, as this node has it once it has all of that.
  long long number(int node, const std::string& sql) const;
  std::string text(int node, const std::string& sql) const;

  /// What the node itself counts or says.
  long long status(int node, const std::string& name) const;

 private:
  std::string schema_;
};

/// Keeps a node from applying what the others commit, until the end of its life.
class Lag {
 public:
  Lag(const ClusterDatabase&, int node);
  ~Lag();
  Lag(const Lag&) = delete;
  Lag& operator=(const Lag&) = delete;

 private:
  std::unique_ptr<soci::session> holder_;
};

}  // namespace txinbox::test
