#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "faults/fault_database.hpp"
#include "faults/subject.hpp"

namespace txinbox::test {

/// How a message ended for the broker, and what its handler had left in the database by then.
struct Settled {
  Action action;  ///< acknowledge or dead_letter
  Rows rows;
};

/// The broker's side of one case: it delivers what is not settled until everything is.
class Broker {
 public:
  Broker(const FaultDatabase& db, const Subject& subject, std::vector<Message> messages);

  /// One delivery of all messages that are not settled: when it is due, if the last was told that another
  /// worker is at it. Fails the test when a second consumer says that it consumed one.
  void deliver(Service&, const Handler&);

  /// What a service was told that another than this broker delivered to.
  void hear_of(const Service&);

  /// Delivers until all are settled, the handler honest by now. Fails the test when that takes more than
  /// ten deliveries.
  void deliver_until_settled(Service&);

  /// By business key.
  const std::map<std::string, Settled>& settled() const { return settled_; }

  /// Each was acknowledged, each with all of its effect at that moment. Then `later` delivers every message
  /// once more, and each has had the effect that the subject promises. Returns whether one took effect more
  /// than once, which is promised only of those in a transaction.
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
  std::map<std::string, int> consumed_;  ///< How often a consumer said so.
  std::chrono::milliseconds due_in_{0};
  int deliveries_ = 0;
};

}  // namespace txinbox::test
