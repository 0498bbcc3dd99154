// Deliveries with each way in which one or two things can go wrong at the calls of their sessions.

#include <initializer_list>
#include <span>

#include <doctest/doctest.h>

#include "orders/inbox_world.hpp"
#include "support/counts.hpp"

namespace txinbox::test {
namespace {

constexpr std::initializer_list<CommitRule> all_rules = {CommitRule::refuses, CommitRule::watches, CommitRule::commits};
constexpr std::initializer_list<InboxMode> one_by_one = {InboxMode::one, InboxMode::counts_starts,
                                                         InboxMode::claim_wait, InboxMode::valid_for};
constexpr std::initializer_list<InboxMode> batches = {InboxMode::each, InboxMode::each_stops, InboxMode::at_once,
                                                      InboxMode::pair};

void try_orders(std::initializer_list<CommitRule> rules, std::initializer_list<InboxMode> modes,
                std::span<const InboxAct> acts, int count_of_twists) {
  int tried = 0;
  for (const CommitRule rule : rules) {
    for (const InboxMode mode : modes) tried += try_inbox_orders(rule, mode, acts, count_of_twists);
  }
  count(tried, "orders of events");
}

}  // namespace

TEST_CASE("a delivery keeps its promises, whatever happens to it") {
  try_orders(all_rules, one_by_one, acts_in_transaction, 1);
}

TEST_CASE("a delivery under a lease keeps its promises, whichever two things happen to it") {
  try_orders({CommitRule::refuses}, {InboxMode::lease}, acts_under_lease, 2);
}

TEST_CASE("a batch keeps its promises, whatever happens to it") {
  try_orders(all_rules, {InboxMode::each, InboxMode::pair}, acts_in_transaction, 1);
}

TEST_SUITE("long") {
  TEST_CASE("a batch keeps its promises with every handler, whatever happens to it") {
    try_orders(all_rules, batches, acts_in_transaction, 1);
  }

  TEST_CASE("a delivery keeps its promises, whichever two things happen to it") {
    try_orders(all_rules, {InboxMode::one, InboxMode::valid_for}, acts_in_transaction, 2);
  }
}

}  // namespace txinbox::test
