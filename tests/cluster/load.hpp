#pragma once

#include <functional>
#include <stdexcept>

#include <txinbox/pool.hpp>
#include <txinbox/tx_consumer.hpp>

#include "cluster/cluster.hpp"
#include "cluster/tally.hpp"

namespace txinbox::test {

/// The exception that the handlers of a load sometimes throw.
struct HandlerFailed : std::runtime_error {
  HandlerFailed() : std::runtime_error("the handler fails") {}
};

/// A stream of messages that consumers on all nodes get at the same time.
struct Load {
  int keys = 300;
  int threads = 2;        ///< The number of threads for each node. Each consumer gets every key.
  bool pooled = true;     ///< If false, the consumers use sessions of the test.
  std::size_t batch = 1;  ///< If it is more than one, the consumers call consume_batch.
  std::size_t recent_keys = 0;
  std::string session_setting = {};  ///< A SET statement for each session.
};

/// Delivers all messages until each delivery is acknowledged. A delivery that ends with an error is repeated on the
/// next node. `meanwhile` runs at the same time, and new keys arrive until it has returned.
///
/// Afterwards, every node must show that each key took effect once, and that no other key took effect.
void run_load(const ClusterDatabase&, const Load&, const std::function<void()>& meanwhile = {});

}  // namespace txinbox::test
