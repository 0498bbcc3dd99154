// Consumers on all nodes at once, every key on each of them.

#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "cluster/load.hpp"
#include "support/long_run.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("every key on every node at once takes effect once: pools") { run_load(ClusterDatabase(), {}); }

TEST_CASE("every key on every node at once takes effect once: sessions of the caller") {
  run_load(ClusterDatabase(), {.pooled = false});
}

TEST_CASE("every key on every node at once takes effect once: batches in pools") {
  run_load(ClusterDatabase(), {.batch = 10});
}

TEST_CASE("every key on every node at once takes effect once: batches on sessions of the caller") {
  run_load(ClusterDatabase(), {.pooled = false, .batch = 10});
}

TEST_CASE("every key on every node at once takes effect once: a cache of recent keys on each") {
  run_load(ClusterDatabase(), {.recent_keys = 1000});
}

/// Runs a load with a setting of Galera that changes how a transaction is replicated, or what a statement waits for.
void run_with(const std::string& setting, int keys = 300) {
  CAPTURE(setting);
  for (const bool pooled : {true, false}) {
    for (const std::size_t batch : {1U, 10U}) {
      run_load(ClusterDatabase(), {.keys = keys, .pooled = pooled, .batch = batch, .session_setting = setting});
    }
  }
}

// In this case, nodes of MariaDB 10.11 can hang forever: the thread that aborts a transaction's fragments waits for the
// session, and the session waits for the row.
TEST_CASE("every key takes effect once with streaming replication, a fragment for each statement" *
          doctest::skip(!long_run())) {
  run_with("set wsrep_trx_fragment_unit = 'statements', wsrep_trx_fragment_size = 1", 100);
}

TEST_CASE("every key takes effect once when statements wait for the commits of other nodes") {
  run_with("set wsrep_sync_wait = 15");
}

TEST_CASE("every key takes effect once when the server repeats aborted statements, or does not") {
  run_with("set wsrep_retry_autocommit = 0");
  run_with("set wsrep_retry_autocommit = 10");
  // A rare error: after the node had sent rows, it ran the statement again. About one in 5000 batches was wrongly
  // treated as claimed.
  run_load(ClusterDatabase(), {.keys = 3000, .batch = 10, .session_setting = "set wsrep_retry_autocommit = 10"});
}

TEST_CASE("a node commits the transaction of a handler that runs KILL, and the claim is torn") {
  const ClusterDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto kill = [](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    sql << "kill connection_id()";
  };
  CHECK(consumer.consume({.business_key = "k"}, kill).outcome == Outcome::parked);
  CHECK(db.claim_of("k") == "torn");
  CHECK(db.effects_of("k") == 1);
}

}  // namespace
}  // namespace txinbox::test
