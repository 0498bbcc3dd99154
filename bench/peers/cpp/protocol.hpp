#pragma once

#include <span>
#include <string>

#include <txinbox/message.hpp>

// The line protocol between the driver (bench/peers/__main__.py) and an adapter: bench/peers/protocol.md.

namespace txinbox::bench {

/// One way to consume messages once, behind the protocol.
class Candidate {
 public:
  virtual ~Candidate() = default;

  /// One delivery whose handler has the fault `fault`. Returns what the broker would be told: `ack`, `nack` or `dead`,
  /// and then a reason. Several threads call it at once.
  virtual std::string deliver(const std::string& key, int account, const std::string& fault) = 0;

  /// Deliveries without a fault, for the speed. Returns how many may be acknowledged. Each worker calls it from a
  /// thread of its own, with its own number from 0.
  virtual int deliver(int worker, std::span<const Message> messages) = 0;

  /// How many messages the second `deliver` takes at once.
  virtual std::size_t at_once() const { return 1; }
};

/// Prints a line for the driver. Any thread may call it.
void say(const std::string& line);

/// Counts a run of a handler.
void count_handler_run(int runs = 1);

/// Reads the driver's lines until the end, and ends the process.
[[noreturn]] void serve(Candidate& candidate);

}  // namespace txinbox::bench
