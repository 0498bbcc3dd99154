#pragma once

#include <atomic>
#include <exception>
#include <stop_token>
#include <string>

#include <txinbox/txinbox.hpp>

#include "stopping/teller.hpp"

namespace txinbox::test {

/// What the threads of the service do. Each takes one message after the other until the stop, tells "ack CONSUMER
/// KEY" of those that it would acknowledge to a broker, and then tries another one, which must be refused.
class Workers {
 public:
  Workers(Pool& pool, std::stop_token stop, Teller& teller) : pool_(pool), stop_(std::move(stop)), teller_(teller) {}

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
  /// Counts the handlers of one thread that begin once the stop is known, and tells how many did.
  class Begun;

  void acknowledge(const std::string& consumer, const std::string& key) { teller_.tell("ack " + consumer + " " + key); }

  /// Runs what must be refused now that the stop was asked for.
  template <class Consume>
  void try_late(const std::string& consumer, const Consume& consume);

  Pool& pool_;
  std::stop_token stop_;
  Teller& teller_;
};

}  // namespace txinbox::test
