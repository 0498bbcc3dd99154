// The decisions of a relay, without a database, a publisher or a clock.

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
#include "support/counts.hpp"
#include "support/relay_orders.hpp"
#include "support/relay_world.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a relay loses, doubles and reorders nothing, whichever two things happen to it") {
  CHECK(wrong_with({}) == "");
  count(try_orders(1, 30) + try_orders(2, 15), "orders of events");
}

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
  RelayOptions options = RelayWorld::options_of_test();
  options.batch = 100;
  options.max_attempts = max_attempts;
  return options;
}

const RelayWorld::Row& row_of(const RelayWorld& world, const std::string& id) {
  return std::ranges::find_if(world.rows, [&](const auto& row) { return row.second.id == id; })->second;
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
      CHECK(row_of(world, id).parked);
      CHECK(row_of(world, id).attempts == 3);
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
  CHECK(row_of(world, id).attempts == 0);
  world.add("others");
  world.run_for(3min);
  CHECK(row_of(world, id).parked);
  CHECK(row_of(world, id).attempts == 3);
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
  for (const std::string& id : poison) CHECK(row_of(world, id).parked);
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
  CHECK(row_of(world, id).attempts <= 1);
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
  CHECK(row_of(world, id).attempts == 0);
}

TEST_CASE("a rejected message is parked at once") {
  RelayWorld world;
  world.add("a");
  world.publisher = [](std::span<const OutgoingMessage>) {
    return std::vector<PublishResult>{{.status = PublishStatus::rejected}};
  };
  world.run_for(1h);
  CHECK(world.calls.size() == 1);
  CHECK(world.rows.begin()->second.parked);
}

TEST_CASE("the rows behind a failed one of its key are published when the wait is over, also if they are many") {
  RelayWorld world;
  for (int i = 0; i < 20; ++i) world.add("a");
  int refusals = 3;  // so that the relay has passed all of them before the last wait ends, after 7 s
  world.publisher = [&](std::span<const OutgoingMessage>) {
    return std::vector<PublishResult>{{.status = --refusals >= 0 ? PublishStatus::failed : PublishStatus::confirmed}};
  };
  world.run_for(9s);  // the first sweep comes later
  CHECK(world.stored.size() == 20);
  CHECK(world.problem() == "");
}

TEST_CASE("a relay that gets more parts publishes their earlier rows at once") {
  RelayWorld world;
  const std::set<int> all = std::exchange(world.parts, {detail::outbox_part("key 0", "")});
  for (int i = 0; i < 100; ++i) world.add("key " + std::to_string(i));
  world.run_for(5s);
  CHECK(world.stored.size() < 50);
  world.parts = all;
  world.run_for(5s);
  CHECK(world.stored.size() == 100);
  CHECK(world.problem() == "");
}

TEST_CASE("one sweep finds all rows that were committed late") {
  RelayOptions options = large_batch(0);
  options.batch = 10'000;
  RelayWorld world(options);
  world.add("");
  world.run_for(9s);
  for (int i = 0; i < 11'000; ++i) world.add_late("");
  world.run_for(2s);
  CHECK(world.stored.size() == 11'001);
}

// The rows of transactions that are open would otherwise be published behind later ones of their key.
TEST_CASE("a relay looks for earlier rows until the transactions that can add them have ended") {
  RelayWorld world;
  world.tells_writers = true;
  world.open_writers = {"writer"};
  world.add("a");
  world.run_for(5s);
  CHECK(world.watermark.seq == 0);
  SUBCASE("of the same name") {}
  SUBCASE("that were prepared meanwhile, and have another name") {
    world.open_writers = {"prepared"};
    world.has_prepared_writer = true;
    world.run_for(5s);
    CHECK(world.watermark.seq == 0);
    world.has_prepared_writer = false;
  }
  world.add_late("a");
  world.add("a");
  world.run();
  world.open_writers = {"another"};  // it began later, so its rows have greater numbers
  world.run_for(5s);
  CHECK(world.watermark.seq > 0);
  world.add("a");
  world.run();
  CHECK(world.problem() == "");
}

TEST_CASE("a relay looks for earlier rows again after another server has taken over") {
  RelayWorld world;
  world.tells_writers = true;
  world.add("a");
  world.run_for(5s);
  REQUIRE(world.watermark.seq > 0);
  world.skip_numbers(2'000);
  world.add("a");
  world.run_for(100ms);
  ++world.server;
  SUBCASE("before it knows this") {}
  SUBCASE("after it knows this") { world.run_for(5s); }
  world.add_late("a");  // its number was given before
  world.add("a");
  world.run();
  CHECK(world.problem() == "");
}

TEST_CASE("a relay lists all rows up to the watermark before it uses it") {
  RelayOptions options = large_batch(0);
  options.batch = 10'000;
  RelayWorld world(options);
  world.tells_writers = true;
  world.open_writers = {"writer"};
  world.add("a");
  world.run_for(3s);
  for (int i = 0; i < 11'000; ++i) world.add_late("");
  world.add_late("a");
  world.open_writers.clear();
  world.run_for(3s);
  CHECK(world.stored.size() == 11'002);
}

TEST_CASE("a wrong number of results counts as a call that throws") {
  RelayWorld world(large_batch(1));
  world.add("k");
  world.publisher = [](std::span<const OutgoingMessage>) { return std::vector<PublishResult>(2); };
  world.run_for(1min);
  CHECK(world.rows.size() == 1);
  CHECK(std::ranges::count(world.events, RelayEventType::error) >= 2);
}

TEST_CASE("a database that is down for an hour is not asked without a wait, and nothing is forgotten") {
  RelayWorld world;
  for (const char* key : {"a", "b", "a"}) world.add(key);
  world.publisher = [&](std::span<const OutgoingMessage> messages) {
    world.database_is_down = true;  // before the rows of these messages are removed
    return std::vector<PublishResult>(messages.size());
  };
  world.run_for(1h);
  CHECK(world.jobs() < 100);
  CHECK(world.calls.size() == 2);
  world.publisher = {};
  world.database_is_down = false;
  world.run_for(2min);
  CHECK(world.rows.empty());
  CHECK(world.calls.size() == 2);
  CHECK(world.problem() == "");
}

TEST_CASE("an attempt is counted once, also if the database fails before it has counted all of them") {
  RelayWorld world;
  for (const char* key : {"a", "b", "c"}) world.add(key);
  world.publisher = [&](std::span<const OutgoingMessage> messages) {
    const auto status = world.calls.size() == 1 ? PublishStatus::failed : PublishStatus::confirmed;
    return std::vector<PublishResult>(messages.size(), {.status = status});
  };
  world.run({{4, Twist::fails_after}});  // after refresh, writers, read and call
  CHECK(world.problem() == "");
  CHECK(world.stored.size() == 3);
}

TEST_CASE("an idle relay reads less and less often, until it is woken") {
  RelayWorld world;
  world.run_for(1min);
  CHECK(world.jobs() < 85);  // 60 reads, 12 refreshes, 6 sweeps
  world.add("a");
  world.wakes_at = world.now + 10ms;
  world.run_for(20ms);
  CHECK(world.stored.size() == 1);
  const int before = world.jobs();
  world.run_for(800ms);
  CHECK(world.jobs() >= before + 3);  // after 100, 300 and 700 ms
}

TEST_CASE("the keys that fail wait longer each time, and at least as long as the receiver says") {
  RelayWorld world;
  world.add("a");
  PublishResult answer{.status = PublishStatus::failed};
  world.publisher = [&](std::span<const OutgoingMessage>) { return std::vector{answer}; };
  world.run_for(100s);
  CHECK(world.calls.size() == 7);  // at 0, 1, 3, 7, 15, 31 and 63 s
  answer.retry_after = 1h;
  world.run_for(50min);
  CHECK(world.calls.size() == 8);
  answer.retry_after = std::chrono::hours(24 * 365);
  world.run_for(std::chrono::hours(24 * 2));
  CHECK(world.calls.size() == 10);  // the longest wait is a day
}

TEST_CASE("a relay that is stopped settles what was confirmed, and does not wait for a database that is down") {
  RelayWorld world;
  world.add("a");
  const std::string second = world.add("a");
  world.publisher = [&](std::span<const OutgoingMessage> messages) {
    world.stop();
    return std::vector<PublishResult>(messages.size());
  };
  CHECK(world.run_to_end() == 1);  // one job after the call: the row is removed
  CHECK(world.rows.size() == 1);
  CHECK(row_of(world, second).attempts == 0);
  world.publisher = [&](std::span<const OutgoingMessage> messages) {
    world.stop();
    world.database_is_down = true;
    return std::vector<PublishResult>(messages.size());
  };
  CHECK(world.run_to_end() == 1);
  CHECK(world.rows.size() == 1);
}

}  // namespace
}  // namespace txinbox::test
