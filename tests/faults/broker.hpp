#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "faults/fault_database.hpp"
#include "faults/subject.hpp"

namespace txinbox::test {

/// The action that settled a message, and the rows of its handler at that moment.
struct Settled {
  Action action;  ///< acknowledge or dead_letter
  Rows rows;
};

/// The broker of one case. It delivers messages until each is settled: acknowledged or dead-lettered.
class Broker {
 public:
  Broker(const FaultDatabase& db, const Subject& subject, std::vector<Message> messages);

  /// Delivers all messages that are not settled, once. If the last delivery was in_progress, it waits until the
  /// redelivery is due. Fails the test when a message is reported as consumed twice.
  void deliver(Service&, const Handler&);

  /// Records the results of a delivery that this broker has not made.
  void record_results_of(const Service&);

  /// Delivers with the correct handler until all messages are settled. Fails the test if this takes more than ten
  /// deliveries.
  void deliver_until_settled(Service&);

  /// The settled messages by business key.
  const std::map<std::string, Settled>& settled() const { return settled_; }

  /// Checks that each message was acknowledged, and that both of its rows existed at that moment. Then `later` delivers
  /// every message once more. The effects must be those that the subject promises. Returns whether a message took
  /// effect more than once, which may happen under a lease.
  bool check_promise(Service& later);

  const std::vector<Message>& messages() const { return messages_; }

 private:
  std::vector<Message> pending() const;
  void wait_until_due();
  void count_consumed(const Message&, const Result&);

  const FaultDatabase& db_;
  const Subject& subject_;
  std::vector<Message> messages_;
  std::map<std::string, Settled> settled_;
  std::map<std::string, int> consumed_;  ///< How often a consumer reported each message as consumed.
  std::chrono::milliseconds due_in_{0};
  int deliveries_ = 0;
};

}  // namespace txinbox::test
