#include "faults/broker.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <doctest/doctest.h>

namespace txinbox::test {

Broker::Broker(const FaultDatabase& db, std::vector<Message> messages) : db_(db), messages_(std::move(messages)) {}

std::vector<Message> Broker::pending() const {
  std::vector<Message> all;
  std::ranges::copy_if(messages_, std::back_inserter(all),
                       [&](const Message& each) { return !settled_.contains(each.business_key); });
  return all;
}

void Broker::deliver(Service& service, const Handler& handler) {
  const std::vector<Message> messages = pending();
  const std::vector<Action> actions = service.deliver(messages, handler);
  REQUIRE(actions.size() == messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    // Nothing can be consumed on a caller's session that the handler has closed.
    CHECK((actions[i] != Action::stop || service.has_lost_its_session()));
    if (actions[i] == Action::acknowledge || actions[i] == Action::dead_letter) {
      settled_[messages[i].business_key] = {actions[i], db_.rows_of(messages[i])};
    }
  }
}

void Broker::deliver_until_settled(Service& service) {
  int deliveries = 0;
  while (!pending().empty()) {
    REQUIRE(++deliveries <= 10);
    deliver(service, write_two_rows);
  }
}

void Broker::check_exactly_once(Service& later) {
  for (const auto& [key, end] : settled_) {
    CAPTURE(key);
    CHECK(end.action == Action::acknowledge);
    CHECK(end.rows == Rows{1, 1});
  }
  for (const Action each : later.deliver(messages_, write_two_rows)) CHECK(each == Action::acknowledge);
  db_.check_exactly_once(messages_);
}

}  // namespace txinbox::test
