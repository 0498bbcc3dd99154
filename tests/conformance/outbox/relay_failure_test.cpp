// OutboxRelay: messages that fail, wait or are parked, and a publisher that throws.

#include <atomic>
#include <chrono>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/eventually.hpp"
#include "support/read_outbox.hpp"
#include "support/recording_publisher.hpp"
#include "support/relay_kit.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("after a failure, the key of the message waits, and other keys continue") {
  const TestDatabase db;
  add(db, "bad", {"bad 1", "bad 2"});
  add(db, "good", {"good 1", "good 2"});
  add(db, "", {"no key"});
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  std::atomic<bool> repaired = false;
  std::atomic<int> last_attempts = 0;
  const OutboxRelay relay(pool, broker.publisher([&](const OutgoingMessage& m) {
    return m.payload == "bad 1" && !repaired ? no() : PublishResult{};
  }),
                          quick([&](const RelayEvent& event) {
                            if (event.type == RelayEventType::failed && event.text == "no")
                              last_attempts = event.attempts;
                          }));
  CHECK(broker.confirmed(3).size() == 3);
  CHECK(eventually([&] { return last_attempts >= 3; }));
  CHECK(broker.tries("bad 2") == 0);
  CHECK(db.number("select attempts from txinbox_outbox_message where attempts > 0") >= 2);
  add(db, "good", {"good 3"});
  CHECK(broker.payloads(4).back() == "good 3");
  repaired = true;
  const auto all = broker.payloads(6);
  REQUIRE(all.size() == 6);
  CHECK(all[4] == "bad 1");
  CHECK(all[5] == "bad 2");
  CHECK(outbox_becomes_empty(db));
}

TEST_CASE("failed attempts count once, also if the reply is lost and the relay writes them again") {
  const ReadOutbox outbox;
  const detail::OutboxMessageTable& table = outbox.table;
  add(outbox.db, "k", {"a", "b", "c"});
  const auto read = [&] { return table.read({.parts = outbox.parts, .limit = 10}); };
  std::vector<detail::OutboxRowKey> rows;
  for (const detail::OutboxRow& each : read()) rows.push_back({each.seq, each.id});
  REQUIRE(rows.size() == 3);
  const auto attempts = [&] {
    std::vector<int> all;
    for (const detail::OutboxRow& each : read()) all.push_back(each.attempts);
    return all;
  };
  const std::vector<detail::FailedAttempt> first{{rows[0], 1, "no", false}, {rows[1], 3, "no", false}};
  table.record_failures(first);
  table.record_failures(first);
  CHECK(attempts() == std::vector{1, 3, 0});
  table.record_failures(std::vector<detail::FailedAttempt>{{rows[0], 2, "no", false}});
  table.record_failures(first);  // what another relay has written stays
  CHECK(attempts() == std::vector{2, 3, 0});
}

TEST_CASE("a message is parked after max_attempts or when it is rejected, and its key continues") {
  const TestDatabase db;
  add(db, "k", {"poison", "next"});
  add(db, "r", {"rejected", "after"});
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  std::atomic<int> parked = 0;
  RelayOptions options =
      quick([&](const RelayEvent& event) { parked += event.type == RelayEventType::parked ? 1 : 0; });
  options.max_attempts = 3;
  const OutboxRelay relay(pool, broker.publisher([](const OutgoingMessage& m) {
    if (m.payload == "poison") return no("bad schema");
    return m.payload == "rejected" ? PublishResult{PublishStatus::rejected, "never"} : PublishResult{};
  }),
                          options);
  CHECK(broker.confirmed(2).size() == 2);
  CHECK(eventually([&] { return db.number("select count(*) from txinbox_outbox_message") == 2; }));
  CHECK(parked == 2);
  CHECK(broker.tries("poison") == 3);
  CHECK(broker.tries("rejected") == 1);
  CHECK(db.number("select count(*) from txinbox_outbox_message where parked_at is not null") == 2);
  CHECK(db.number("select count(*) from txinbox_outbox_message where attempts = 3") == 1);
}

TEST_CASE("a postponed message counts no attempt, its key keeps its order, and other keys continue") {
  const TestDatabase db;
  add(db, "slow", {"slow 1", "slow 2"});
  add(db, "", {"no key"});
  add(db, "good", {"good 1"});
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  std::atomic<bool> is_ready = false;
  std::atomic<int> failures = 0;
  RelayOptions options = quick([&](const RelayEvent& event) {
    if (event.type == RelayEventType::failed || event.type == RelayEventType::parked) ++failures;
  });
  options.max_attempts = 1;
  const OutboxRelay relay(pool, broker.publisher([&](const OutgoingMessage& m) {
    const bool waits = m.payload == "slow 1" || m.payload == "no key";
    return PublishResult{.status = waits && !is_ready ? PublishStatus::postponed : PublishStatus::confirmed};
  }),
                          options);
  CHECK(eventually([&] { return broker.tries("slow 1") >= 5 && broker.tries("no key") >= 5; }));
  CHECK(broker.tries("slow 2") == 0);
  CHECK(broker.payloads(1).front() == "good 1");
  CHECK(db.number("select count(*) from txinbox_outbox_message where attempts = 0 and parked_at is null") == 3);
  is_ready = true;
  CHECK(broker.confirmed(4).size() == 4);
  CHECK(outbox_becomes_empty(db));
  CHECK(failures == 0);
}

TEST_CASE("a message that failed with retry_after waits for this time, and its key waits, too") {
  const TestDatabase db;
  add(db, "busy", {"busy 1", "busy 2"});
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> tries;
  const OutboxRelay relay(pool, broker.publisher([&](const OutgoingMessage& m) {
    if (m.payload != "busy 1") return PublishResult{};
    tries.push_back(Clock::now());
    if (tries.size() == 2) return PublishResult{};
    return PublishResult{.status = PublishStatus::failed, .error = "busy", .retry_after = 700ms};
  }),
                          quick());
  const auto payloads = broker.payloads(2);
  CHECK(payloads == std::vector<std::string>{"busy 1", "busy 2"});
  REQUIRE(tries.size() == 2);
  CHECK(tries[1] - tries[0] >= 700ms);  // max_backoff is 40 ms
}

TEST_CASE("a message whose headers are no JSON object is parked") {
  const TestDatabase db;
  add(db, "k", {"poison", "next"});
  db.run(
      "update txinbox_outbox_message set headers = '[1]' where seq = (select * from (select min(seq) from "
      "txinbox_outbox_message) as first)");
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  const OutboxRelay relay(pool, broker.publisher(), quick());
  CHECK(broker.payloads(1) == std::vector<std::string>{"next"});
  CHECK(eventually(
      [&] { return db.number("select count(*) from txinbox_outbox_message where parked_at is not null") == 1; }));
}

TEST_CASE("if the publisher throws, no message counts as failed, and all messages are published later") {
  const TestDatabase db;
  add(db, "a", {"1", "2"});
  add(db, "b", {"3"});
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  std::atomic<int> calls = 0, errors = 0;
  const Publisher inner = broker.publisher();
  const OutboxRelay relay(
      pool,
      [&](std::span<const OutgoingMessage> messages) {
        const int call = ++calls;
        if (call <= 2) throw std::runtime_error("the broker is away");
        if (call == 3) return std::vector<PublishResult>(messages.size() + 1);
        return inner(messages);
      },
      quick([&](const RelayEvent& event) { errors += event.type == RelayEventType::error ? 1 : 0; }));
  CHECK(broker.confirmed(3).size() == 3);
  CHECK(errors == 3);
  CHECK(outbox_becomes_empty(db));
}

TEST_CASE("later messages of a key with a parked message are published, even if the relay's position has passed it") {
  const TestDatabase db;
  add(db, "k", {"poison"});
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  RelayOptions options = quick();
  options.max_attempts = 1;
  options.sweep = std::chrono::hours(1);
  const OutboxRelay relay(
      pool, broker.publisher([](const OutgoingMessage& m) { return m.payload == "poison" ? no() : PublishResult{}; }),
      options);
  for (int i = 0; i < 30; ++i) {
    add(db, "other", {"passes " + std::to_string(i)});
    REQUIRE(broker.confirmed(static_cast<std::size_t>(i) + 1).size() == static_cast<std::size_t>(i) + 1);
    std::this_thread::sleep_for(100ms);
  }
  add(db, "k", {"next"});
  CHECK(broker.payloads(31).back() == "next");
}

TEST_CASE("after a failure, a message without a key does not delay other messages") {
  const TestDatabase db;
  add(db, "", {"bad", "good 1"});
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  RelayOptions options = quick();
  options.initial_backoff = options.max_backoff = std::chrono::hours(1);
  const OutboxRelay relay(
      pool, broker.publisher([](const OutgoingMessage& m) { return m.payload == "bad" ? no() : PublishResult{}; }),
      options);
  for (int i = 2; i <= 10; ++i) {
    CHECK(broker.payloads(static_cast<std::size_t>(i) - 1).back() == "good " + std::to_string(i - 1));
    add(db, "", {"good " + std::to_string(i)});
  }
  CHECK(broker.payloads(10).back() == "good 10");
  CHECK(broker.tries("bad") == 1);
}

TEST_CASE("the table keeps the first part of the publisher's error, without bytes that are no text") {
  const TestDatabase db;
  add(db, "a", {"bytes"});
  add(db, "b", {"long"});
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  std::atomic<int> errors = 0;
  RelayOptions options = quick([&](const RelayEvent& event) { errors += event.type == RelayEventType::error ? 1 : 0; });
  options.max_attempts = 1;
  const OutboxRelay relay(pool, broker.publisher([](const OutgoingMessage& m) {
    return no(m.payload == "bytes" ? std::string("no\0t taken\xff", 11) : std::string(5'000, 'x'));
  }),
                          options);
  CHECK(eventually(
      [&] { return db.number("select count(*) from txinbox_outbox_message where parked_at is not null") == 2; }));
  CHECK(errors == 0);
  const auto session = db.session();
  const auto all = list_outbox(*session);
  REQUIRE(all.size() == 2);
  CHECK(all[0].last_error == "not taken");
  CHECK(all[1].last_error == std::string(1'000, 'x'));
}

TEST_CASE("thousands of failing keys do not stop the others, and each key keeps its order") {
  const TestDatabase db;
  std::vector<OutgoingMessage> messages;
  for (int i = 0; i < 3'000; ++i) messages.push_back({.topic = "t", .key = std::to_string(i), .payload = "bad"});
  for (int i = 0; i < 50; ++i) messages.push_back({.topic = "t", .key = std::to_string(i), .payload = "behind"});
  for (int i = 0; i < 50; ++i) messages.push_back({.topic = "t", .key = "g" + std::to_string(i), .payload = "good"});
  Outbox::add(*db.session(), messages);
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  std::atomic<bool> fails = true;
  RelayOptions options = quick();
  options.initial_backoff = options.max_backoff = 2s;
  const OutboxRelay relay(pool, broker.publisher([&](const OutgoingMessage& m) {
    return m.payload == "bad" && fails ? no() : PublishResult{};
  }),
                          options);
  CHECK(broker.confirmed(50).size() == 50);
  add(db, "later", {"good"});
  CHECK(broker.confirmed(51).size() == 51);
  CHECK(broker.tries("behind") == 0);
  fails = false;
  const std::vector<OutgoingMessage> all = broker.confirmed(3'101);
  CHECK(all.size() == 3'101);
  std::set<std::string> keys;
  for (const OutgoingMessage& m : all) {
    if (m.payload == "bad") keys.insert(m.key);
    if (m.payload == "behind") CHECK_MESSAGE(keys.contains(m.key), m.key);
  }
  CHECK(outbox_becomes_empty(db));
}

TEST_CASE("messages of one call fail for different reasons, and only those that were rejected are parked") {
  const TestDatabase db;
  add(db, "", {"first", "second", "third", "fourth"});
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  const OutboxRelay relay(pool, broker.publisher([&](const OutgoingMessage& m) {
    if (m.payload == "third") return PublishResult{.status = PublishStatus::rejected, .error = "it's too long"};
    if (m.payload == "fourth") return PublishResult{};
    return no("no " + m.payload);
  }),
                          {.initial_backoff = 1h, .max_backoff = 1h});
  CHECK(eventually([&] { return db.number("select sum(attempts) from txinbox_outbox_message") == 3; }));
  const auto left = list_outbox(*db.session());
  REQUIRE(left.size() == 3);
  CHECK(left[0].last_error == "no first");
  CHECK(left[1].last_error == "no second");
  CHECK(left[1].state == OutboxState::failing);
  CHECK(left[2].last_error == "it's too long");
  CHECK(left[2].state == OutboxState::parked);
}

}  // namespace
}  // namespace txinbox::test
