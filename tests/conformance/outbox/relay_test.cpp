// OutboxRelay: every message of the outbox is published at least once, and in the order of its key.

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/recording_publisher.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

RelayOptions quick(std::function<void(const RelayEvent&)> observer = {}) {
  return {.poll = 5ms,
          .idle_poll = 20ms,
          .sweep = 200ms,
          .lease = 10s,
          .initial_backoff = 20ms,
          .max_backoff = 40ms,
          .observer = std::move(observer)};
}

void add(const TestDatabase& db, const std::string& key, const std::vector<std::string>& payloads) {
  std::vector<OutgoingMessage> messages;
  for (const std::string& payload : payloads) messages.push_back({.topic = "t", .key = key, .payload = payload});
  Outbox::add(*db.session(), messages);
}

bool is_empty(const TestDatabase& db) {
  return eventually([&] { return db.number("select count(*) from txinbox_outbox_message") == 0; });
}

PublishResult no(std::string why = "no") { return {.status = PublishStatus::failed, .error = std::move(why)}; }

TEST_CASE("a relay publishes what was added, with every byte, and removes it") {
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
  CHECK(is_empty(db));
}

TEST_CASE("messages of a key are published in their order, and one call has at most one of a key") {
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
  CHECK(is_empty(db));
}

TEST_CASE("a failed message makes its key wait, while other keys flow") {
  const TestDatabase db;
  add(db, "bad", {"bad 1", "bad 2"});
  add(db, "good", {"good 1", "good 2"});
  add(db, "", {"no key"});
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  std::atomic<bool> mended = false;
  std::atomic<int> last_attempts = 0;
  const OutboxRelay relay(pool, broker.publisher([&](const OutgoingMessage& m) {
    return m.payload == "bad 1" && !mended ? no() : PublishResult{};
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
  mended = true;
  const auto all = broker.payloads(6);
  REQUIRE(all.size() == 6);
  CHECK(all[4] == "bad 1");
  CHECK(all[5] == "bad 2");
  CHECK(is_empty(db));
}

TEST_CASE("a message is parked after max_attempts or when it is rejected, and its key goes on") {
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

TEST_CASE("a postponed message counts no attempt, its key keeps its order, and other keys flow") {
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
  CHECK(is_empty(db));
  CHECK(failures == 0);
}

TEST_CASE("a message that failed with retry_after waits as long, and its key with it") {
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

TEST_CASE("headers of another writer that are no JSON object park their message") {
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

TEST_CASE("a publisher that throws counts nothing as failed, and everything is published later") {
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
  CHECK(is_empty(db));
}

TEST_CASE(
    "a relay holds no connection while it publishes, and its destructor waits for the call and keeps what it "
    "confirmed") {
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
    { const auto connection = pool.acquire(); }  // the only one
    go_on = true;
  }
  CHECK(db.number("select count(*) from txinbox_outbox_message") == 0);
  CHECK(db.number("select count(*) from txinbox_outbox_relay") == 0);
}

TEST_CASE("wake makes an idle relay read at once") {
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

TEST_CASE("a row that commits late is found, and comes before later rows of its key" * doctest::skip(on_sqlite3())) {
  const TestDatabase db;
  Pool pool = db.pool(1);
  RecordingPublisher broker;
  RelayOptions options = quick();
  options.sweep = std::chrono::hours(1);  // so that only the look at the key can keep the order
  const auto late = db.session();
  {
    OutboxRelay relay(pool, broker.publisher(), options);
    *late << "begin";
    Outbox::add(*late, {.topic = "t", .key = "k", .payload = "early row"});
    add(db, "other", {"passes"});
    REQUIRE(broker.confirmed(1).size() == 1);
    // The position must have passed the open row: it follows a second behind.
    for (int i = 0; i < 30; ++i) {
      add(db, "other", {"passes " + std::to_string(i)});
      REQUIRE(broker.confirmed(static_cast<std::size_t>(i) + 2).size() == static_cast<std::size_t>(i) + 2);
      std::this_thread::sleep_for(100ms);
    }
    *late << "commit";
    add(db, "k", {"late row"});
    add(db, "other", {"behind both"});
    CHECK(broker.payloads(32).back() == "behind both");
    CHECK(broker.tries("late row") == 0);
  }
  const OutboxRelay relay(pool, broker.publisher(), quick());
  const auto all = broker.payloads(34);
  REQUIRE(all.size() == 34);
  CHECK(all[32] == "early row");
  CHECK(all[33] == "late row");
}

TEST_CASE("relays share the parts, and a new one gets its share") {
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
    CHECK(is_empty(db));
  }
  CHECK(eventually([&] { return parts[0] == 64; }));
  const auto all = broker.payloads(100);
  CHECK(std::set<std::string>(all.begin(), all.end()).size() == 100);
}

TEST_CASE("when a publisher hangs, another relay takes over after the lease") {
  const TestDatabase db;
  add(db, "k", {"1", "2"});
  Pool pool = db.pool(4);
  RecordingPublisher broker;
  std::atomic<bool> hanging = false, go_on = false;
  RelayOptions options = quick();
  options.lease = 1s;
  const Publisher inner = broker.publisher();
  const OutboxRelay hangs(
      pool,
      [&](std::span<const OutgoingMessage> messages) {
        hanging = true;
        eventually([&] { return go_on.load(); });
        return inner(messages);
      },
      options);
  REQUIRE(eventually([&] { return hanging.load(); }));
  const OutboxRelay other(pool, broker.publisher(), options);
  CHECK(broker.payloads(2) == std::vector<std::string>{"1", "2"});
  go_on = true;
  // The late call publishes its message once more, with the same id. It must not go on to the second one.
  const auto all = broker.confirmed(3);
  REQUIRE(all.size() == 3);
  CHECK(all[2].payload == "1");
  CHECK(all[2].id == all[0].id);
  CHECK(is_empty(db));
}

TEST_CASE("a relay works on after the database has removed its registration") {
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

TEST_CASE("four relays and busy writers: nothing is lost, nothing has two ids, no key is out of order") {
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
                if (i % 3 == 0 && !on_sqlite3()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
              });
          committed += result.outcome == Outcome::consumed ? 1U : 0U;
        }
      });
    }
  }
  REQUIRE(committed == writers * each);
  CHECK(is_empty(db));
  std::map<std::string, int> last;
  std::set<std::string> ids;
  int inversions = 0;
  for (const OutgoingMessage& message : broker.confirmed(committed)) {
    if (!ids.insert(message.id).second) continue;  // a relay that lost its lease may publish once more
    if (std::stoi(message.payload) != last[message.key] + 1) ++inversions;
    last[message.key] = std::stoi(message.payload);
  }
  CHECK(ids.size() == committed);
  CHECK(inversions == 0);
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
