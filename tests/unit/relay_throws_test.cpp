// A relay whose publisher throws: nobody knows which message of the call is the reason.

#include <algorithm>
#include <chrono>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "outbox/suspects.hpp"
#include "support/relay_world.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// A publisher that throws for each call with one of these messages.
Publisher dies_at(std::set<std::string> ids) {
  return [ids = std::move(ids)](std::span<const OutgoingMessage> messages) {
    for (const OutgoingMessage& message : messages) {
      if (ids.contains(message.id)) throw std::runtime_error("the program has ended");
    }
    return std::vector<PublishResult>(messages.size());
  };
}

std::vector<PublishResult> always_throws(std::span<const OutgoingMessage>) { throw std::runtime_error("no broker"); }

RelayOptions large_batch(int max_attempts) {
  RelayOptions options = relay_test_options(100);
  options.max_attempts = max_attempts;
  return options;
}

TEST_CASE("messages for which the publisher throws do not hold up the others, and are parked") {
  for (const std::set<int>& poisonous : {std::set{0}, std::set{8}, std::set{19}, std::set{3, 4, 17}}) {
    RelayWorld world(large_batch(3));
    std::set<std::string> poison;
    for (int i = 0; i < 20; ++i) {
      const std::string id = world.add("k" + std::to_string(i));
      if (poisonous.contains(i)) poison.insert(id);
    }
    world.publisher = dies_at(poison);
    world.run_for(1min);
    CHECK(world.stored.size() == 20 - poison.size());
    for (int minute = 0; minute < 30; ++minute) {
      world.add("others");
      world.run_for(1min);
    }
    CHECK(world.stored.size() == 50 - poison.size());
    CHECK(world.rows.size() == poison.size());
    for (const std::string& id : poison) {
      CHECK(world.row_of(id).parked);
      CHECK(world.row_of(id).attempts == 3);
    }
    CHECK(world.problem() == "");
  }
}

TEST_CASE("a broker that is down for an hour blames no message, and is not called without a wait") {
  for (const int batch : {1, 100}) {
    RelayOptions options = large_batch(1);
    options.batch = static_cast<std::size_t>(batch);
    RelayWorld world(options);
    for (int i = 0; i < 20; ++i) world.add("k" + std::to_string(i));
    world.publisher = always_throws;
    world.run_for(1h);
    CHECK(world.calls.size() < 80);
    for (const auto& [seq, row] : world.rows) CHECK(row.attempts == 0);
    world.publisher = {};
    world.run_for(2min);
    CHECK(world.rows.empty());
    CHECK(world.stored.size() == 20);
    CHECK(world.problem() == "");
  }
}

TEST_CASE("a message is blamed for a call that throws only if other messages have been published since its first one") {
  RelayWorld world(large_batch(3));
  const std::string id = world.add("k");
  world.publisher = dies_at({id});
  world.run_for(1h);
  CHECK(world.row_of(id).attempts == 0);
  world.add("others");
  world.run_for(3min);
  CHECK(world.row_of(id).parked);
  CHECK(world.row_of(id).attempts == 3);
}

TEST_CASE("a message is not blamed for a call with another message that had its number") {
  detail::Suspects suspects;
  const std::vector<detail::OutboxRow> first = {{.seq = 1, .id = "first"}, {.seq = 2, .id = "other"}};
  const std::vector<detail::OutboxRow> second = {{.seq = 1, .id = "second"}};
  CHECK_FALSE(suspects.call_threw(first));
  suspects.call_succeeded();
  CHECK_FALSE(suspects.call_threw(second));
  suspects.call_succeeded();
  CHECK(suspects.call_threw(second));
}

TEST_CASE("the last messages of an outbox are parked if the publisher throws for each of them") {
  RelayWorld world(large_batch(3));
  std::set<std::string> poison;
  for (int i = 0; i < 20; ++i) {
    const std::string id = world.add("k" + std::to_string(i));
    if (i % 8 == 0) poison.insert(id);
  }
  world.publisher = dies_at(poison);
  world.run_for(5min);
  CHECK(world.stored.size() == 17);
  for (const std::string& id : poison) CHECK(world.row_of(id).parked);
}

TEST_CASE("a message for which the publisher throws makes no other message wait") {
  RelayWorld world(large_batch(0));
  const std::string id = world.add("k");
  world.add("others");
  world.publisher = dies_at({id});
  world.run_for(10min);
  world.add("more");
  world.run_for(2s);
  CHECK(world.stored.size() == 2);
}

TEST_CASE("a broker that is down twice counts at most one attempt of a message") {
  RelayWorld world(large_batch(0));
  world.publisher = always_throws;
  const std::string id = world.add("k");
  world.run_for(20s);  // the message now waits for 16 s
  world.publisher = {};
  world.add("others");
  world.run_for(5s);
  world.publisher = always_throws;
  world.add("more");
  world.run_for(10min);
  REQUIRE(world.stored.size() == 1);
  CHECK(world.row_of(id).attempts <= 1);
}

TEST_CASE("a message that was tried with success in between is not blamed for an earlier throw") {
  RelayWorld world(large_batch(1));
  const std::string id = world.add("k");
  world.publisher = dies_at({id});
  world.run_for(500ms);
  CHECK(world.calls.size() == 1);
  world.add("others");
  world.publisher = [&](std::span<const OutgoingMessage> messages) {
    std::vector<PublishResult> results(messages.size());
    if (messages[0].id == id) results[0].status = PublishStatus::postponed;
    return results;
  };
  world.run_for(3s);
  world.publisher = dies_at({id});
  world.run_for(500ms);
  CHECK(world.row_of(id).attempts == 0);
}

TEST_CASE("a wrong number of results counts as a call that throws") {
  RelayWorld world(large_batch(1));
  world.add("k");
  world.publisher = [](std::span<const OutgoingMessage>) { return std::vector<PublishResult>(2); };
  world.run_for(1min);
  CHECK(world.rows.size() == 1);
  CHECK(std::ranges::count(world.events, RelayEventType::error) >= 2);
}

}  // namespace
}  // namespace txinbox::test
