// OutboxRelay: several relays share the parts, and take over from each other.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/eventually.hpp"
#include "support/long_run.hpp"
#include "support/recording_publisher.hpp"
#include "support/relay_kit.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("relays share the parts, and a new relay gets its share") {
  const TestDatabase db;
  Pool pool = db.pool(4);
  RecordingPublisher broker;
  std::array<std::atomic<std::size_t>, 3> parts{};
  const auto watching = [&](std::size_t relay) {
    RelayOptions options = quick([&parts, relay](const RelayEvent& event) {
      if (event.type == RelayEventType::parts) parts[relay] = event.parts;
    });
    options.lease = 3s;
    return options;
  };
  OutboxRelay first(pool, broker.publisher(), watching(0));
  CHECK(eventually([&] { return parts[0] == 64; }));
  {
    OutboxRelay second(pool, broker.publisher(), watching(1));
    CHECK(eventually([&] { return parts[0] == 32 && parts[1] == 32; }));
    OutboxRelay third(pool, broker.publisher(), watching(2));
    CHECK(eventually([&] { return parts[0] + parts[1] + parts[2] == 64 && parts[2] >= 20; }));
    for (int i = 0; i < 100; ++i) add(db, "key " + std::to_string(i), {std::to_string(i)});
    CHECK(outbox_becomes_empty(db));
  }
  CHECK(eventually([&] { return parts[0] == 64; }));
  const auto all = broker.payloads(100);
  CHECK(std::set<std::string>(all.begin(), all.end()).size() == 100);
}

TEST_CASE("a relay publishes only messages of its own parts") {
  const TestDatabase db;
  Pool pool = db.pool(4);
  std::array<std::atomic<std::size_t>, 2> parts{};
  std::array<std::set<std::string>, 2> keys;
  std::mutex mutex;
  std::atomic<bool> go_on = false;
  const auto make = [&](std::size_t relay) {
    RelayOptions options = quick([&parts, relay](const RelayEvent& event) {
      if (event.type == RelayEventType::parts) parts.at(relay) = event.parts;
    });
    options.lease = 12s;
    // The call lasts until the end of the test, so that no row is removed before the other relay can read it.
    const Publisher publisher = [&, relay](std::span<const OutgoingMessage> messages) {
      {
        const std::lock_guard lock(mutex);
        for (const OutgoingMessage& message : messages) keys.at(relay).insert(message.key);
      }
      eventually([&] { return go_on.load(); });
      return std::vector<PublishResult>(messages.size());
    };
    return std::make_unique<OutboxRelay>(pool, publisher, options);
  };
  const auto first = make(0);
  const auto second = make(1);
  REQUIRE(eventually([&] { return parts[0] == 32 && parts[1] == 32; }));
  std::vector<OutgoingMessage> messages;
  for (int i = 0; i < 100; ++i) messages.push_back({.topic = "t", .key = std::to_string(i)});
  Outbox::add(*db.session(), messages);
  CHECK(eventually([&] {
    const std::lock_guard lock(mutex);
    return !keys[0].empty() && !keys[1].empty();
  }));
  {
    const std::lock_guard lock(mutex);
    CHECK(keys[0].size() + keys[1].size() == 100);
    CHECK(std::ranges::none_of(keys[0], [&](const std::string& key) { return keys[1].contains(key); }));
  }
  go_on = true;
  CHECK(outbox_becomes_empty(db));
}

/// Lets a publisher that hangs go on, at the latest when the test ends.
struct Release {
  std::atomic<bool>& go_on;

  void now() const {
    go_on = true;
    go_on.notify_all();
  }
  ~Release() { now(); }
};

TEST_CASE("while a publisher hangs, another relay works on, and takes over its parts after the lease" *
          doctest::test_suite("timed")) {
  const TestDatabase db;
  Pool pool = db.pool(1), other_pool = db.pool(1);
  RecordingPublisher broker;
  std::atomic<std::size_t> parts = 0, other_parts = 0;
  const auto counting = [](std::atomic<std::size_t>& count) {
    RelayOptions options = quick([&count](const RelayEvent& event) {
      if (event.type == RelayEventType::parts) count = event.parts;
    });
    options.lease = long_run() ? 30s : 3s;
    return options;
  };
  std::vector<OutgoingMessage> late;  // the messages of the call that hangs
  std::atomic<bool> hangs = false, go_on = false;
  const auto publish = broker.publisher();
  const OutboxRelay relay(
      pool,
      [&](std::span<const OutgoingMessage> messages) {
        if (!go_on) {
          late.assign(messages.begin(), messages.end());
          hangs = true;
          go_on.wait(false);
        }
        return publish(messages);
      },
      counting(parts));
  const Release release{go_on};
  const OutboxRelay other(other_pool, broker.publisher(), counting(other_parts));
  REQUIRE(eventually([&] { return parts == 32 && other_parts == 32; }));
  const auto begin = std::chrono::steady_clock::now();
  constexpr std::size_t keys = 40;
  std::vector<OutgoingMessage> messages;
  for (const std::string which : {"first", "second"}) {
    for (std::size_t i = 0; i < keys; ++i) {
      messages.push_back({.topic = "t", .key = std::to_string(i), .payload = which + " " + std::to_string(i)});
    }
  }
  Outbox::add(*db.session(), messages);
  REQUIRE(eventually([&] { return hangs.load(); }));
  CHECK_NOTHROW(pool.acquire());  // the relay holds no connection during the call
  const auto published = broker.confirmed(2 * keys);
  REQUIRE(published.size() == 2 * keys);
  CHECK(outbox_becomes_empty(db));
  CHECK(other_parts == 64);
  if (long_run()) std::this_thread::sleep_until(begin + 60s);
  release.now();
  // The late call publishes its messages once more, with the same ids. The relay must not go on to the next ones.
  const auto all = broker.confirmed(2 * keys + late.size());
  REQUIRE(all.size() == 2 * keys + late.size());
  for (const OutgoingMessage& message : late) {
    CHECK(std::ranges::count(all, message.id, &OutgoingMessage::id) == 2);
    CHECK(broker.tries("first " + message.key) == 2);
  }
  CHECK(eventually([&] { return parts == 32; }));
  for (std::size_t i = 0; i < keys; ++i) CHECK(broker.tries("second " + std::to_string(i)) == 1);
}

TEST_CASE("four relays together try a failing message as often as one relay") {
  const TestDatabase db;
  Pool pool = db.pool(4);
  RecordingPublisher broker;
  std::array<std::atomic<std::size_t>, 4> parts{};
  std::atomic<int> parked = 0;
  std::vector<std::unique_ptr<OutboxRelay>> relays;
  for (std::atomic<std::size_t>& own : parts) {
    RelayOptions options = quick([&](const RelayEvent& event) {
      if (event.type == RelayEventType::parts) own = event.parts;
      if (event.type == RelayEventType::parked) ++parked;
    });
    options.max_attempts = 5;
    const auto refuse = [](const OutgoingMessage& m) { return m.key == "bad" ? no() : PublishResult{}; };
    relays.push_back(std::make_unique<OutboxRelay>(pool, broker.publisher(refuse), options));
  }
  // If a part changes its relay during a call, its messages may be published once more. So wait for the final parts.
  REQUIRE(eventually([&] { return std::ranges::all_of(parts, [](const auto& own) { return own == 16; }); }));
  add(db, "bad", {"bad 1", "bad 2"});
  for (int i = 0; i < 50; ++i) add(db, "key " + std::to_string(i), {std::to_string(i)});
  CHECK(eventually([&] { return parked == 2; }));
  CHECK(broker.tries("bad 1") == 5);
  CHECK(broker.tries("bad 2") == 5);
  CHECK(broker.confirmed(50).size() == 50);
}

TEST_CASE("a relay continues after its registration was removed from the database") {
  const TestDatabase db;
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  RelayOptions options = quick();
  options.lease = 600ms;
  const OutboxRelay relay(pool, broker.publisher(), options);
  add(db, "k", {"1"});
  REQUIRE(broker.confirmed(1).size() == 1);
  db.run("delete from txinbox_outbox_relay");
  add(db, "k", {"2"});
  CHECK(broker.confirmed(2).size() == 2);
  CHECK(eventually([&] { return db.number("select count(*) from txinbox_outbox_relay") == 1; }));
}

TEST_CASE("four relays and busy writers: no message is lost or has two ids, and each key keeps its order") {
  const TestDatabase db;
  db.run("create table aggregate (id integer primary key, version integer not null)");
  constexpr int keys = 10, writers = 4, each = 60;
  for (int i = 0; i < keys; ++i) db.run("insert into aggregate values (" + std::to_string(i) + ", 0)");
  Pool pool = db.pool(8);
  RecordingPublisher broker;
  std::atomic<int> calls = 0;
  const auto sometimes_fails = [&](const OutgoingMessage&) { return ++calls % 17 == 0 ? no() : PublishResult{}; };
  std::vector<std::unique_ptr<OutboxRelay>> relays;
  for (int i = 0; i < 4; ++i) {
    relays.push_back(std::make_unique<OutboxRelay>(pool, broker.publisher(sometimes_fails), quick()));
  }
  std::atomic<std::size_t> committed = 0;
  {
    TxConsumer consumer(pool, "svc");
    std::vector<std::jthread> threads;
    for (int writer = 0; writer < writers; ++writer) {
      threads.emplace_back([&, writer] {
        for (int i = 0; i < each; ++i) {
          const int key = (writer * 7 + i * 3) % keys;
          const std::string name = std::to_string(key);
          const auto result = consumer.consume(
              {.business_key = std::to_string(writer) + "/" + std::to_string(i)}, [&](soci::session& sql, Delivery&) {
                int version = 0;
                sql << "update aggregate set version = version + 1 where id = " + name;
                sql << "select version from aggregate where id = " + name, soci::into(version);
                Outbox::add(sql, {.topic = "t", .key = name, .payload = std::to_string(version)});
                if (i % 3 == 0 && !one_writer()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
              });
          committed += result.outcome == Outcome::consumed ? 1U : 0U;
        }
      });
    }
  }
  REQUIRE(committed == writers * each);
  CHECK(outbox_becomes_empty(db));
  std::map<std::string, int> last;
  std::set<std::string> ids;
  int inversions = 0;
  for (const OutgoingMessage& message : broker.confirmed(committed)) {
    if (!ids.insert(message.id).second) continue;  // a relay that lost its lease may publish a message again
    if (std::stoi(message.payload) != last[message.key] + 1) ++inversions;
    last[message.key] = std::stoi(message.payload);
  }
  CHECK(ids.size() == committed);
  CHECK(inversions == 0);
}

}  // namespace
}  // namespace txinbox::test
