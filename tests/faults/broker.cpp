#include "faults/broker.hpp"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include <doctest/doctest.h>

namespace txinbox::test {

Broker::Broker(const FaultDatabase& db, const Subject& subject, std::vector<Message> messages)
    : db_(db), subject_(subject), messages_(std::move(messages)) {}

std::vector<Message> Broker::pending() const {
  std::vector<Message> all;
  std::ranges::copy_if(messages_, std::back_inserter(all),
                       [&](const Message& each) { return !settled_.contains(each.business_key); });
  return all;
}

/// On SQLite this function makes the lease expire, because a wait in each of the many cases would take too long.
void Broker::wait_until_due() {
  if (due_in_ == std::chrono::milliseconds(0)) return;
  if (on_sqlite3()) {
    db_.let_leases_end();
  } else {
    std::this_thread::sleep_for(due_in_);
  }
  due_in_ = std::chrono::milliseconds(0);
}

void Broker::count_consumed(const Message& message, const Result& result) {
  if (result.outcome == Outcome::consumed) CHECK(++consumed_[message.business_key] == 1);
}

void Broker::record_results_of(const Service& service) {
  for (std::size_t i = 0; i < messages_.size(); ++i) count_consumed(messages_[i], service.results()[i]);
}

void Broker::deliver(Service& service, const Handler& handler) {
  wait_until_due();
  ++deliveries_;
  const std::vector<Message> messages = pending();
  const std::vector<Action> actions = service.deliver(messages, handler);
  REQUIRE(actions.size() == messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Result& result = service.results()[i];
    // A claim whose transaction has not ended yet says no time.
    if (result.outcome == Outcome::in_progress) {
      due_in_ = std::max({due_in_, result.retry_after, std::chrono::milliseconds(1)});
    }
    count_consumed(messages[i], result);
    // If the handler has closed the caller's session, no message can be consumed on this session.
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

bool Broker::check_promise(Service& later) {
  bool doubled = false;
  for (const auto& settled : settled_) {
    const auto& key = settled.first;
    const auto& end = settled.second;
    CAPTURE(key);
    CHECK(end.action == Action::acknowledge);
    if (subject_.leased) {
      // This includes the delivery with the fault. Another broker object may have made it.
      CHECK(end.rows.first >= 1);
      CHECK(end.rows.first <= deliveries_ + 1);
      doubled = doubled || end.rows.first > 1;
    } else {
      CHECK(end.rows == FaultDatabase::effect_of(subject_));
    }
  }
  for (const Action each : later.deliver(messages_, write_two_rows)) CHECK(each == Action::acknowledge);
  db_.check_promise(subject_, messages_);
  for (const Message& each : messages_) CHECK(db_.rows_of(each) == settled_.at(each.business_key).rows);
  return doubled;
}

}  // namespace txinbox::test
