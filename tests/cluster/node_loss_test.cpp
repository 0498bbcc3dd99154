// Nodes are killed, stopped, or separated from the others while consumers run on all of them.

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "cluster/load.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

constexpr int victim = 3;

void a_while() { std::this_thread::sleep_for(std::chrono::milliseconds(500)); }

void kill_and_start(int node) {
  a_while();
  node_command("kill", node);
  wait_until_cluster_has(nodes - 1, node % nodes + 1);
  a_while();
  node_command("start", node);
}

void cut_off_and_let_back(int node) {
  a_while();
  cut_off(node);
  wait_until_refusing(node);
  a_while();
  let_back(node);
  wait_until_synced(node);
}

void freeze_and_thaw(int node) {
  a_while();
  node_command("freeze", node);
  wait_until_cluster_has(nodes - 1, node % nodes + 1);
  a_while();
  node_command("thaw", node);
  wait_until_synced(node);
}

TEST_CASE("every key takes effect once while nodes are killed and started again") {
  run_load(ClusterDatabase(), {}, [] {
    kill_and_start(2);
    kill_and_start(3);
  });
  run_load(ClusterDatabase(), {.pooled = false, .batch = 10}, [] { kill_and_start(3); });
}

TEST_CASE("every key takes effect once while nodes are cut off and come back") {
  run_load(ClusterDatabase(), {.batch = 10}, [] {
    cut_off_and_let_back(2);
    cut_off_and_let_back(3);
  });
  run_load(ClusterDatabase(), {.pooled = false}, [] { cut_off_and_let_back(3); });
}

TEST_CASE("every key takes effect once while nodes are stopped and continued") {
  run_load(ClusterDatabase(), {.recent_keys = 50}, [] {
    freeze_and_thaw(2);
    freeze_and_thaw(3);
  });
}

}  // namespace
}  // namespace txinbox::test
