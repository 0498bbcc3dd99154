#pragma once

#include <memory>
#include <string>

#include <soci/soci.h>
#include <txinbox/pool.hpp>

#include "support/effects.hpp"

namespace txinbox::test {

/// The nodes of the cluster that tests/galera.sh has started, numbered from 1.
inline constexpr int nodes = 3;

/// Runs an action of tests/galera_node.sh: kill, start, freeze or thaw.
void node_command(const std::string& act, int node);

/// Separates a node from the group without ending its process. Its clients stay connected, and the node refuses their
/// statements.
void cut_off(int node);
void let_back(int node);

/// Waits until the node is a member of the whole cluster, and has applied what the other nodes have committed.
void wait_until_synced(int node);

/// Waits until the node, or the rest of the cluster, has noticed the separation.
void wait_until_refusing(int node);
void wait_until_cluster_has(int members, int seen_by);

/// A migrated database on all nodes. It has the effects of EffectDatabase, in a table without any key, and the table
/// `account` with ten rows, which all handlers change. It waits for the whole cluster first.
class ClusterDatabase : public EffectDatabase {
 public:
  ClusterDatabase();

  const std::string& schema() const { return schema_; }
  std::string url(int node) const;
  Pool pool(int node, PoolOptions = {}) const;
  std::unique_ptr<soci::session> session(int node) const;

  using EffectDatabase::number;
  using EffectDatabase::text;

  /// Runs the query on this node after it has applied all commits that the cluster has now.
  long long number(int node, const std::string& sql) const;
  std::string text(int node, const std::string& sql) const;

  /// A status variable of the node itself.
  long long status(int node, const std::string& name) const;

 private:
  std::string schema_;
};

/// While this object exists, the node does not apply what other nodes commit.
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
