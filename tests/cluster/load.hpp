#pragma once

#include <functional>
#include <stdexcept>

#include <txinbox/pool.hpp>
#include <txinbox/tx_consumer.hpp>

#include "cluster/cluster.hpp"
#include "cluster/tally.hpp"

namespace txinbox::test {

/// What the handlers of a load throw now and then.
struct HandlerFailed : std::runtime_error {
  HandlerFailed() : std::runtime_error("the handler fails") {}
};

/// A stream of messages that consumers on all nodes get at the same time.
struct Load {
  int keys = 300;
  int threads = 2;        ///< On each node. Each of them is delivered every key.
  bool pooled = true;     ///< Or on sessions of the test's.
  std::size_t batch = 1;  ///< More than one: by consume_batch.
  std::size_t recent_keys = 0;
  std::string session_setting = {};  ///< One SET, for each session.
};

/// Delivers all of it until each delivery is acknowledged. One that ends in an error is delivered again,
/// on the next node: what a node did not answer, another one decides. `meanwhile` runs beside it, and new
/// keys arrive until it has returned.
///
/// Then the books must balance on every node: each key took effect once, and nothing else did.
void run_load(const ClusterDatabase&, const Load&, const std::function<void()>& meanwhile = {});

}  // namespace txinbox::test
