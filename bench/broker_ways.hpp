#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <txinbox/handler.hpp>
#include <txinbox/pool.hpp>
#include <txinbox/run.hpp>
#include <txinbox/source.hpp>

#include "database.hpp"
#include "meter.hpp"

namespace txinbox::bench {

struct BrokerOptions {
  unsigned short port = 0;  ///< Of the broker on the loopback.
  int rounds = 5;
  int messages = 200'000;  ///< The number of messages that the broker has when a slot begins.
  int slot_ms = 2'000;
};

/// Ways to consume from a broker that the sections of all brokers have. Each way returns its messages a second, and
/// checks that its updates were made.
///
/// Errors: `std::runtime_error`, also if the broker has no more messages.
class BrokerWays {
 public:
  static constexpr std::size_t workers = 4;

  /// Returns the key of a message. It ends with a number, which is different for each message of the broker.
  using KeyOf = std::string_view (*)(const Incoming&);

  struct Way {
    const char* name;
    std::function<double(const std::string& slot)> measure;  ///< The name of each slot is different.
  };

  BrokerWays(const Target& target, const BrokerOptions& options, KeyOf key_of);

  /// Measures the ways in turns. The result is the figures of the section.
  nlohmann::ordered_json in_turns(const std::vector<Way>& ways) const;

  /// A meter of one slot.
  Meter meter() const;

  /// Polls batches of 100 and acknowledges them. There is no database.
  double source_alone(Source& source);

  /// `run` in batches of 100 with a handler that does nothing.
  double empty_handler(const std::string& slot, Source& source);

  /// `run` in batches of 100 with an UPDATE for each message.
  double run(const std::string& slot, Source& source, std::size_t threads);

  /// One message, a transaction by hand, and its acknowledgement. `next` returns the key of the next message.
  double by_hand(const std::string& slot, const std::function<std::string()>& next,
                 const std::function<void()>& acknowledge);

  /// The number of messages that these ways have acknowledged up to now.
  long long acknowledged() const { return acknowledged_; }

 private:
  double loop(const std::string& slot, Source& source, std::size_t threads, const Handler& handler, int updates);

  const BrokerOptions options_;
  const KeyOf key_of_;
  const std::string name_;
  const Database database_;
  Pool pool_;
  const Connection checking_;
  long long acknowledged_ = 0;
};

}  // namespace txinbox::bench
