// OutboxRelay: every message of the outbox is published at least once, and in the order of its key.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/eventually.hpp"
#include "support/recording_publisher.hpp"
#include "support/relay_kit.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a relay publishes every byte of a message, and removes its row") {
  const TestDatabase db;
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const OutgoingMessage message{.topic = "it's \\ \"stock\"",
                                .key = "schlüssel",
                                .type = "OrderBooked",
                                .payload = bytes,
                                .headers = {{"traceparent", "00-\"x\""}, {"ü", ""}}};
  const std::string id = Outbox::add(*db.session(), message);
  Outbox::add(*db.session(), {.topic = "empty"});
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  const OutboxRelay relay(pool, broker.publisher(), quick());
  const auto published = broker.confirmed(2);
  REQUIRE(published.size() == 2);
  CHECK(published[0].topic == message.topic);
  CHECK(published[0].key == message.key);
  CHECK(published[0].type == message.type);
  CHECK(published[0].payload == bytes);
  CHECK(published[0].headers == message.headers);
  CHECK(published[0].id == id);
  CHECK(published[1].topic == "empty");
  CHECK(published[1].payload.empty());
  CHECK(published[1].headers.empty());
  CHECK(outbox_becomes_empty(db));
}

TEST_CASE("messages of a key are published in their order, and one call has at most one message of a key") {
  const TestDatabase db;
  std::vector<std::string> expected;
  for (int i = 0; i < 50; ++i) expected.push_back(std::to_string(i));
  add(db, "k", expected);
  add(db, "", {"a", "b"});
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  RelayOptions options = quick();
  options.batch = 7;
  const OutboxRelay relay(pool, broker.publisher(), options);
  std::vector<std::string> of_key;
  for (const OutgoingMessage& message : broker.confirmed(52)) {
    if (message.key == "k") of_key.push_back(message.payload);
  }
  CHECK(of_key == expected);
  CHECK(!broker.same_key_twice());
  CHECK(outbox_becomes_empty(db));
}

TEST_CASE(
    "a relay holds no connection while it publishes, and its destructor waits for the call and stores its results") {
  const TestDatabase db;
  add(db, "k", {"1"});
  Pool pool = db.pool(1);
  std::atomic<bool> publishing = false, go_on = false;
  {
    const OutboxRelay relay(
        pool,
        [&](std::span<const OutgoingMessage> messages) {
          publishing = true;
          eventually([&] { return go_on.load(); });
          return std::vector<PublishResult>(messages.size());
        },
        quick());
    REQUIRE(eventually([&] { return publishing.load(); }));
    { const auto connection = pool.acquire(); }  // the only connection
    go_on = true;
  }
  CHECK(db.number("select count(*) from txinbox_outbox_message") == 0);
  CHECK(db.number("select count(*) from txinbox_outbox_relay") == 0);
}

TEST_CASE("a stop while the renewal of the lease waits for a connection loses no result") {
  const TestDatabase db;
  add(db, "k", {"1", "2"});  // two calls
  Pool pool = db.pool(1);
  std::optional<Connection> held;
  std::atomic<bool> published = false;
  RelayOptions options = quick();
  options.lease = 200ms;
  const Publisher publisher = [&](std::span<const OutgoingMessage> messages) {
    held = pool.acquire();
    std::this_thread::sleep_for(options.lease * 3 / 4);  // the next call needs a renewal first
    published = true;
    return std::vector<PublishResult>(messages.size());
  };
  auto relay = std::make_unique<OutboxRelay>(pool, publisher, options);
  REQUIRE(eventually([&] { return published.load(); }));
  std::this_thread::sleep_for(100ms);  // the renewal waits for the only connection
  std::jthread stop([&] { relay.reset(); });
  std::this_thread::sleep_for(100ms);
  held.reset();
  stop.join();
  CHECK(db.number("select count(*) from txinbox_outbox_message") == 1);
}

TEST_CASE("wake makes an idle relay read immediately") {
  const TestDatabase db;
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  std::atomic<std::size_t> parts = 0;
  RelayOptions options = quick([&](const RelayEvent& event) {
    if (event.type == RelayEventType::parts) parts = event.parts;
  });
  options.poll = options.idle_poll = options.sweep = std::chrono::hours(1);
  options.lease = std::chrono::hours(24);
  OutboxRelay relay(pool, broker.publisher(), options);
  REQUIRE(eventually([&] { return parts == 64; }));
  for (int i = 1; i <= 3; ++i) {
    add(db, "k", {std::to_string(i)});
    relay.wake();
    CHECK(broker.confirmed(static_cast<std::size_t>(i)).size() == static_cast<std::size_t>(i));
  }
}

TEST_CASE("the wait of a relay does not grow while it finds messages at each poll") {
  const TestDatabase db;
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  RelayOptions options = quick();
  options.poll = 1ms;
  options.idle_poll = options.sweep = options.lease = std::chrono::hours(24);
  const OutboxRelay relay(pool, broker.publisher(), options);
  // If the wait doubled at each poll, it would be one hour after 22 messages.
  for (std::size_t i = 1; i <= 30; ++i) {
    add(db, "k", {std::to_string(i)});
    REQUIRE(broker.confirmed(i).size() == i);
  }
}

TEST_CASE("a row that commits late is published before later rows of its key" * doctest::skip(one_writer())) {
  const TestDatabase db;
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  RelayOptions options = quick();
  options.sweep = std::chrono::hours(1);  // so that no sweep finds the early row
  const auto late = db.session();
  const OutboxRelay relay(pool, broker.publisher(), options);
  *late << "begin";
  Outbox::add(*late, {.topic = "t", .key = "k", .payload = "early row"});
  add(db, "other", {"passes"});
  REQUIRE(broker.confirmed(1).size() == 1);
  // Waits until the relay's position has passed the row of the open transaction. The position is one second behind.
  for (int i = 0; i < 30; ++i) {
    add(db, "other", {"passes " + std::to_string(i)});
    REQUIRE(broker.confirmed(static_cast<std::size_t>(i) + 2).size() == static_cast<std::size_t>(i) + 2);
    std::this_thread::sleep_for(100ms);
  }
  *late << "commit";
  add(db, "k", {"late row"});
  const auto all = broker.payloads(33);
  REQUIRE(all.size() == 33);
  CHECK(all[31] == "early row");
  CHECK(all[32] == "late row");
}

TEST_CASE("a row that commits after the relay has passed it is published by the next sweep" *
          doctest::skip(one_writer())) {
  const TestDatabase db;
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  const OutboxRelay relay(pool, broker.publisher(), quick());
  const auto late = db.session();
  *late << "begin";
  Outbox::add(*late, {.topic = "t", .key = "k", .payload = "late"});
  for (int i = 0; i < 30; ++i) {
    add(db, "other", {"passes " + std::to_string(i)});
    REQUIRE(broker.confirmed(static_cast<std::size_t>(i) + 1).size() == static_cast<std::size_t>(i) + 1);
    std::this_thread::sleep_for(100ms);
  }
  *late << "commit";
  CHECK(broker.payloads(31).back() == "late");
  CHECK(outbox_becomes_empty(db));
}

TEST_CASE("a listener can use the only connection of the relay's pool") {
  const TestDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 1, .acquire_timeout = 200ms});
  std::mutex mutex;
  std::vector<RelayEventType> seen;
  RelayOptions options = quick([&](const RelayEvent& event) {
    int one = 0;
    pool.acquire().session() << "select 1", soci::into(one);  // the relay ignores an exception of the listener
    const std::lock_guard lock(mutex);
    if (one == 1) seen.push_back(event.type);
  });
  add(db, "good", {"1"});
  add(db, "bad", {"2"});
  const OutboxRelay relay(
      pool,
      [](std::span<const OutgoingMessage> messages) {
        std::vector<PublishResult> results;
        for (const OutgoingMessage& each : messages) results.push_back(each.key == "bad" ? no() : PublishResult{});
        return results;
      },
      options);
  const auto has_seen = [&](RelayEventType type) {
    const std::lock_guard lock(mutex);
    return std::ranges::find(seen, type) != seen.end();
  };
  CHECK(eventually([&] { return has_seen(RelayEventType::published); }));
  CHECK(eventually([&] { return has_seen(RelayEventType::failed); }));
  CHECK(eventually([&] { return has_seen(RelayEventType::parts); }));
}

TEST_CASE("a call of the publisher has a bounded number of bytes, and at least one message") {
  const TestDatabase db;
  constexpr std::size_t mebibyte = 1024UL * 1024;
  const auto sql = db.session();
  for (int i = 0; i < 6; ++i) {
    Outbox::add(*sql, {.topic = "t", .key = std::to_string(i), .payload = std::string(4 * mebibyte, 'x')});
  }
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  std::atomic<std::size_t> most = 0;
  const Publisher inner = broker.publisher();
  const OutboxRelay relay(
      pool,
      [&](std::span<const OutgoingMessage> messages) {
        std::size_t bytes = 0;
        for (const OutgoingMessage& m : messages) bytes += m.payload.size();
        most = std::max(most.load(), bytes);
        return inner(messages);
      },
      quick());
  CHECK(broker.confirmed(6).size() == 6);
  CHECK(most <= 20 * mebibyte);
}

// A server without a binary log shows a commit to other sessions before it is on the disk.
TEST_CASE("on a server that shows commits early, a relay publishes only after a later commit of its own" *
          doctest::skip(!on_mariadb() || has_binary_log())) {
  const TestDatabase db;
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  std::atomic<int> early = 0;
  const OutboxRelay relay(pool, broker.publisher([&](const OutgoingMessage&) {
    // The relay extends its lease of 10 s with its own commit.
    if (db.number(
            "select count(*) from txinbox_outbox_relay r join txinbox_outbox_message m where r.lease_expires_at < "
            "m.created_at + interval 10 second") > 0) {
      ++early;
    }
    return PublishResult{};
  }),
                          quick());
  for (std::size_t i = 1; i <= 10; ++i) {
    add(db, "", {"m"});
    CHECK(broker.confirmed(i).size() == i);
  }
  CHECK(early == 0);
}

TEST_CASE("options out of range and an empty publisher are refused") {
  const TestDatabase db;
  Pool pool = db.pool(1);
  const auto refused = [&](const Publisher& publisher, const RelayOptions& options) {
    CHECK_THROWS_AS(OutboxRelay(pool, publisher, options), Error);
  };
  const Publisher publisher = RecordingPublisher().publisher();
  refused({}, {});
  refused(publisher, {.batch = 0});
  refused(publisher, {.batch = 10'001});
  refused(publisher, {.poll = 0ms});
  refused(publisher, {.sweep = 0ms});
  refused(publisher, {.lease = 99ms});
  refused(publisher, {.max_attempts = -1});
  refused(publisher, {.initial_backoff = 0ms});
}

}  // namespace
}  // namespace txinbox::test
