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

// A read returns the first rows of all keys that it asks for, up to the size of a batch.
TEST_CASE("keys with many rows that fail do not keep the other keys that have failed from being read") {
  RelayOptions options = relay_test_options(10);
  options.max_backoff = options.initial_backoff;
  RelayWorld world(options);
  for (int i = 0; i < 20; ++i) world.add("stuck");
  for (int i = 0; i < 4; ++i) world.add("k" + std::to_string(i));
  for (int i = 0; i < 4; ++i) world.add("");
  bool broker_works = false;
  world.publisher = [&](std::span<const OutgoingMessage> messages) {
    world.now += 2s;     // the messages that have failed before this call are due after it
    world.add("other");  // so that the next call is for this message
    std::vector<PublishResult> results(messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const bool works = messages[i].key == "other" || (broker_works && messages[i].key != "stuck");
      if (!works) results[i].status = PublishStatus::failed;
    }
    return results;
  };
  world.run_for(1min);
  broker_works = true;
  world.run_for(1min);
  for (const auto& [seq, row] : world.rows) CHECK((row.key == "stuck" || row.key == "other"));
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
  RelayWorld world(relay_test_options(10'000));
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
  RelayWorld world(relay_test_options(10'000));
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
  CHECK(world.row_of(second).attempts == 0);
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
