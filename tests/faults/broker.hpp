#pragma once

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
  Broker(const FaultDatabase& db, std::vector<Message> messages);

  /// One delivery of all messages that are not settled.
  void deliver(Service&, const Handler&);

  /// Delivers until all are settled, the handler honest by now. Fails the test when that takes more than
  /// ten deliveries.
  void deliver_until_settled(Service&);

  /// By business key.
  const std::map<std::string, Settled>& settled() const { return settled_; }

  /// Each was acknowledged, each with all of its effect at that moment. Then `later`
  /// delivers every message once more, and each has taken effect once.
  void check_exactly_once(Service& later);

  const std::vector<Message>& messages() const { return messages_; }

 private:
  std::vector<Message> pending() const;

  const FaultDatabase& db_;
  std::vector<Message> messages_;
  std::map<std::string, Settled> settled_;
};

}  // namespace txinbox::test
