#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "torture/conduct.hpp"
#include "torture/messages.hpp"
#include "torture/plan.hpp"

using namespace txinbox;
using namespace txinbox::torture;

TEST_CASE("a storm's keys are distinct, and valid, and a collation would merge some") {
  std::set<std::string> keys;
  std::set<std::string> folded;
  constexpr std::uint64_t count = 6'000;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string key = Plan::business_key(i);
    CHECK(key.size() <= 255);
    keys.insert(key);
    key = key.substr(0, 254);
    key.erase(key.find_last_not_of(' ') + 1);
    std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) { return std::tolower(c); });
    folded.insert(key);
  }
  CHECK(keys.size() == count);
  CHECK(folded.size() == count / 2);  // an accent changes more than the case of a letter does
}

TEST_CASE("the same seed gives the same schedule, and another seed a different one") {
  int differing = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const KeyPlan a = Plan(7).key(i);
    const KeyPlan b = Plan(7).key(i);
    CHECK(a.copies == b.copies);
    CHECK(a.transfer == b.transfer);
    CHECK(a.stores == b.stores);
    if (!(Plan(8).key(i).transfer == a.transfer)) ++differing;
  }
  CHECK(differing > 50);
}

TEST_CASE("each key comes 1 to 10 times and moves money between two accounts") {
  std::set<int> copies;
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    const KeyPlan key = Plan(1).key(i);
    copies.insert(key.copies);
    CHECK(key.transfer.from != key.transfer.to);
    CHECK(std::min(key.transfer.from, key.transfer.to) >= 0);
    CHECK(std::max(key.transfer.from, key.transfer.to) < (key.is_hot ? hot_account_count : account_count));
    CHECK(key.transfer.amount > 0);
  }
  CHECK(copies.size() == 10);
  CHECK(*copies.begin() == 1);
}

TEST_CASE("with shards, everything that a transfer writes lies in the shard of its key") {
  // The first bits of the MD5 of the first six keys, in reverse order.
  const std::array<int, 6> in_two{0, 1, 1, 0, 1, 0};
  const std::array<int, 6> in_four{2, 3, 3, 2, 1, 2};
  for (std::size_t i = 0; i < 6; ++i) {
    const Transfer in_one_of_two = Plan(1, 2).key(i).transfer;
    CHECK(in_one_of_two.from % 2 == in_two.at(i));
    CHECK(in_one_of_two.to % 2 == in_two.at(i));
    const Transfer in_one_of_four = Plan(1, 4).key(i).transfer;
    CHECK(in_one_of_four.from % 4 == in_four.at(i));
    CHECK(in_one_of_four.to % 4 == in_four.at(i));
  }
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    const KeyPlan key = Plan(1, 2).key(i);
    CHECK(key.transfer.from != key.transfer.to);
    CHECK(std::max(key.transfer.from, key.transfer.to) < account_count);
  }
  // The first bit of the MD5 of account-0 and account-1 is 1, of account-2 and account-2-1 too, of account-0-1 0.
  CHECK(Plan(1).outbox_key({.from = 0}) == "account-0");
  CHECK(Plan(1, 2).outbox_key({.from = 0}) == "account-0-1");
  CHECK(Plan(1, 2).outbox_key({.from = 1}) == "account-1");
}

TEST_CASE("every conduct occurs, and the last attempts are honest") {
  std::set<Conduct> met;
  for (std::uint64_t key = 0; key < 20'000; ++key) {
    for (const bool is_hot : {false, true}) {
      met.insert(conduct_of(1, {.key = key}, is_hot, 1));
      CHECK(conduct_of(1, {.key = key, .tries = 21}, is_hot, 1) == Conduct::honest);
      CHECK(conduct_of(1, {.key = key}, is_hot, 11) == Conduct::honest);
    }
  }
  CHECK(met.size() == static_cast<std::size_t>(Conduct::closes_session) + 1);
}

TEST_CASE("every conduct under a lease occurs, and the last attempts are honest") {
  std::set<LeaseConduct> met;
  for (std::uint64_t key = 0; key < 5'000; ++key) {
    for (const bool is_hot : {false, true}) {
      met.insert(lease_conduct_of(1, {.key = key}, is_hot));
      CHECK(lease_conduct_of(1, {.key = key, .tries = 21}, is_hot) == LeaseConduct::honest);
    }
  }
  CHECK(met.size() == static_cast<std::size_t>(LeaseConduct::throws_last) + 1);
}

TEST_CASE("a message between broker and worker is read completely, or not at all") {
  const Assignment assignment{
      .number = 3,
      .is_batch = true,
      .skips_failures = true,
      .repaired_below = 30,
      .death = Death::near_commit,
      .arrivals = {{.key = 5, .copy = 2, .tries = 1}, {.key = 6, .is_altered = true, .redrives = 4}}};
  const auto assigned = read_assignment(to_line(assignment));
  REQUIRE(assigned);
  CHECK(assigned->number == 3);
  CHECK(assigned->is_batch);
  CHECK(assigned->skips_failures);
  CHECK(assigned->repaired_below == 30);
  CHECK(assigned->death == Death::near_commit);
  CHECK(assigned->arrivals == assignment.arrivals);

  const Reply reply{.number = 3,
                    .answers = {{.outcome = Outcome::consumed, .action = Action::acknowledge, .stored = "1-2"},
                                {.outcome = Outcome::in_progress,
                                 .action = Action::redeliver,
                                 .retry_after = std::chrono::seconds(3)},
                                {.outcome = Outcome::failed,
                                 .action = Action::redeliver,
                                 .failure = Failure::unexpected,
                                 .why = "not UTF-8: \xff"}},
                    .met = {.retries = 1,
                            .deadlocks = 2,
                            .lock_timeouts = 3,
                            .connections_lost = 4,
                            .transactions_lost = 5,
                            .leases_taken_over = 6,
                            .leases_lost = 7,
                            .effects_refused = 8}};
  const std::string line = to_line(reply);
  const auto replied = read_reply(line);
  REQUIRE(replied);
  REQUIRE(replied->answers.size() == 3);
  CHECK(replied->answers[0].outcome == Outcome::consumed);
  CHECK(replied->answers[0].action == Action::acknowledge);
  CHECK(replied->answers[0].stored == "1-2");
  CHECK(replied->answers[1].outcome == Outcome::in_progress);
  CHECK(replied->answers[1].retry_after == std::chrono::seconds(3));
  CHECK(replied->answers[2].failure == Failure::unexpected);
  CHECK_FALSE(replied->answers[2].stored);
  CHECK(replied->met.retries == 1);
  CHECK(replied->met.deadlocks == 2);
  CHECK(replied->met.lock_timeouts == 3);
  CHECK(replied->met.connections_lost == 4);
  CHECK(replied->met.transactions_lost == 5);
  CHECK(replied->met.leases_taken_over == 6);
  CHECK(replied->met.leases_lost == 7);
  CHECK(replied->met.effects_refused == 8);

  for (std::size_t length = 0; length + 1 < line.size(); ++length) {  // the last character is the line feed
    CHECK_FALSE(read_reply(line.substr(0, length)));
  }
}
