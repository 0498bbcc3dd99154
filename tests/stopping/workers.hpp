#pragma once

#include <atomic>
#include <exception>
#include <stop_token>
#include <string>

#include <txinbox/txinbox.hpp>

#include "stopping/line_writer.hpp"

namespace txinbox::test {

/// The work of the service's threads. Each consumes one message after the other until the stop. It prints "ack CONSUMER
/// KEY" for each message that it would acknowledge to a broker. After the stop, it tries another message, which must be
/// refused.
class Workers {
 public:
  Workers(Pool& pool, std::stop_token stop, LineWriter& lines) : pool_(pool), stop_(std::move(stop)), lines_(lines) {}

  void one_by_one();
  void in_batches();
  void under_leases();

  /// Waits for the lease of another service, which holds the key "held" for hours.
  void waiting_for_a_lease();

  /// Waits between two runs, after a transient error.
  void waiting_to_retry();

  /// Waits for a connection, all of which are in use.
  void waiting_for_a_connection();

 private:
  /// Counts the handlers of one thread that begin after the stop, and prints this number.
  class Begun;

  void acknowledge(const std::string& consumer, const std::string& key) { lines_.write("ack " + consumer + " " + key); }

  /// Calls what must be refused after the stop.
  template <class Consume>
  void try_late(const std::string& consumer, const Consume& consume);

  Pool& pool_;
  std::stop_token stop_;
  LineWriter& lines_;
};

}  // namespace txinbox::test
