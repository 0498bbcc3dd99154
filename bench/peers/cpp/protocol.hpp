#pragma once

#include <span>
#include <string>

#include <txinbox/message.hpp>

// The line protocol between the driver (bench/peers/__main__.py) and an adapter: bench/peers/protocol.md.

namespace txinbox::bench {

/// One way to consume messages once. The protocol calls it.
class Candidate {
 public:
  virtual ~Candidate() = default;

  /// Makes one delivery whose handler has the fault `fault`. Returns the answer to the broker (`ack`, `nack` or `dead`)
  /// and then a reason. Several threads may call it at the same time.
  virtual std::string deliver(const std::string& key, int account, const std::string& fault) = 0;

  /// Makes deliveries without a fault, to measure the speed. Returns how many may be acknowledged. Each worker calls it
  /// from a separate thread. `worker` is the number of the worker, from 0.
  virtual int deliver(int worker, std::span<const Message> messages) = 0;

  /// The number of messages for one call of the second `deliver`.
  virtual std::size_t at_once() const { return 1; }
};

/// Prints a line for the driver. Any thread may call it.
void say(const std::string& line);

/// Counts a run of a handler.
void count_handler_run(int runs = 1);

/// Handles the driver's lines until their end, then ends the process.
[[noreturn]] void serve(Candidate& candidate);

}  // namespace txinbox::bench
