// A RocketMQ source with a real broker. The consumer runs in this process.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/soci/execute.hpp>
#include <txinbox/txinbox.hpp>

#include "raw_message.hpp"
#include "rocketmq_broker.hpp"
#include "support/effects.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

RunOptions until_idle(std::chrono::milliseconds idle) {
  return {.backoff = 5ms, .max_backoff = 50ms, .idle_exit = idle};
}

MessageOf body_is_key() {
  return [](const Incoming& in) {
    return Message{.business_key = std::string(in.body), .message_id = std::string(in.id)};
  };
}

TEST_CASE("RocketMQ: a handler gets the message as it was sent") {
  RocketMqBroker broker;
  (void)broker.create("records");
  const auto before = std::chrono::system_clock::now();
  const auto results = broker.publish({{.topic = "records",
                                        .key = "k1",
                                        .type = "OrderBooked",
                                        .payload = "body",
                                        .headers = {{"b", "2"}, {"a", "\xc3\xbc"}},
                                        .id = "my-id"}});
  REQUIRE(results.size() == 1);
  CHECK(results[0].error == "");
  REQUIRE(results[0].status == PublishStatus::confirmed);
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  const auto source = open_rocketmq(RocketMqBroker::options("records"));
  int runs = 0;
  const RunSummary summary = run(
      *source, consumer, body_is_key(),
      [&](soci::session& sql, Delivery& delivery) {
        add_effect(sql, delivery);
        ++runs;
        const Incoming& in = delivery.incoming();
        CHECK(in.body == "body");
        CHECK(in.key == "k1");
        CHECK_FALSE(in.lane);
        CHECK(in.id == "my-id");
        CHECK(in.deliveries == 1);
        CHECK(in.header("id") == "my-id");
        CHECK(in.header("type") == "OrderBooked");
        CHECK(in.header("a") == "\xc3\xbc");
        CHECK(in.header("b") == "2");
        CHECK(in.header("keys") == "k1");
        CHECK(in.sent >= before - 1s);
        CHECK(in.sent <= std::chrono::system_clock::now() + 1s);
      },
      until_idle(3s));
  CHECK(runs == 1);
  CHECK(summary.consumed == 1);
  CHECK(summary.acknowledged == 1);
}

TEST_CASE("RocketMQ: a compressed body is decompressed, and a corrupt one becomes a missing body") {
  RocketMqBroker broker;
  (void)broker.create("compressed");
  const std::string text(5000, 'x');
  send({.topic = "compressed", .body = compressed(text, Compression::gzip), .is_compressed = true});
  send({.topic = "compressed", .body = compressed(text, Compression::zlib), .is_compressed = true});
  send({.topic = "compressed", .body = "no gzip", .is_compressed = true});
  const auto source = open_rocketmq(RocketMqBroker::options("compressed"));
  std::vector<Incoming> all;
  const auto give_up = std::chrono::steady_clock::now() + 1min;
  while (all.size() < 3 && std::chrono::steady_clock::now() < give_up) {
    for (Incoming& each : source->poll(10, 1s)) all.push_back(std::move(each));
  }
  REQUIRE(all.size() == 3);
  std::multiset<std::string> bodies;
  for (const Incoming& each : all) bodies.insert(each.has_body ? std::string(each.body) : "none");
  CHECK(bodies == std::multiset<std::string>{"none", text, text});
}

TEST_CASE("RocketMQ: messages that fail or take long stay in the source, and the broker delivers each once") {
  RocketMqBroker broker;
  (void)broker.create("poison");
  for (int i = 0; i < 200; ++i) broker.publish("poison", "m" + std::to_string(i), "k" + std::to_string(i));
  broker.flush();
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  const auto source = open_rocketmq(RocketMqBroker::options("poison"));
  RunOptions run_options = until_idle(20s);
  run_options.batch = 10;
  int failures = 0;
  bool was_slow = false;
  const RunSummary summary = run(
      *source, consumer, body_is_key(),
      [&](soci::session& sql, Delivery& delivery) {
        add_effect(sql, delivery);
        const std::string& key = delivery.message().business_key;
        if (key == "m50" && !std::exchange(was_slow, true)) std::this_thread::sleep_for(25s);  // invisible is 10 s
        if (key == "m7" && ++failures < 20) throw std::runtime_error("not yet");
        CHECK(delivery.incoming().deliveries == 1);
      },
      run_options);
  CHECK(summary.received == 200);
  CHECK(summary.consumed == 200);
  CHECK(summary.acknowledged == 200);
  CHECK(summary.dropped == 0);
  CHECK(summary.retries >= 9);
  CHECK(db.effects() == 200);
}

TEST_CASE("RocketMQ: after a stop, consumed messages are not delivered again, and the others are delivered at once") {
  RocketMqBroker broker;
  (void)broker.create("stops");
  constexpr int all = 150;
  for (int i = 0; i < all; ++i) broker.publish("stops", "m" + std::to_string(i), "k" + std::to_string(i));
  broker.flush();
  EffectDatabase db;
  Pool pool = db.pool();
  std::uint64_t duplicates = 0;
  for (int round = 0; round < 10 && db.effects() < all; ++round) {
    std::stop_source stop;
    TxConsumer consumer(pool, "svc", {.stop = stop.get_token()});
    const auto source = open_rocketmq(RocketMqBroker::options("stops"));
    RunOptions options = until_idle(15s);
    options.batch = 20;
    int left = std::min(90, all - static_cast<int>(db.effects()));
    duplicates += run(
                      *source, consumer, body_is_key(),
                      [&](soci::session& sql, Delivery& delivery) {
                        add_effect(sql, delivery);
                        if (--left == 0) stop.request_stop();
                      },
                      options)
                      .already_consumed;
  }
  CHECK(db.effects() == all);
  CHECK(duplicates == 0);
}

TEST_CASE(
    "RocketMQ: an acknowledgement after the invisible time is ignored, and the other consumer keeps the message") {
  RocketMqBroker broker;
  (void)broker.create("stale");
  broker.publish("stale", "m", "k");
  broker.flush();
  const auto first = open_rocketmq(RocketMqBroker::options("stale"));
  std::vector<Incoming> old;
  while (old.empty()) old = first->poll(1, 1s);
  CHECK(first->holds(old.front()));
  const auto second = open_rocketmq(RocketMqBroker::options("stale"));
  std::vector<Incoming> again;
  while (again.empty()) again = second->poll(1, 1s);  // the first source is not polled, so it does not prolong the time
  CHECK(again.front().deliveries == 2);
  CHECK_FALSE(first->holds(old.front()));
  int revoked = 0;
  first->on_event([&](const SourceEvent& event) { revoked += event.type == SourceEventType::lanes_revoked; });
  const std::vector<const Incoming*> done_too_late = {&old.front()};
  first->acknowledge(done_too_late);
  CHECK(first->poll(0, 500ms).empty());
  CHECK(revoked == 1);
  CHECK(first->status().connected);
  CHECK(second->holds(again.front()));
  const std::vector<const Incoming*> done = {&again.front()};
  second->acknowledge(done);
  second->acknowledge(done);
  CHECK(second->poll(1, 12s).empty());
  CHECK_FALSE(second->holds(again.front()));
  CHECK(second->status().reconnects == 0);
}

/// Each version of a key updates the row of the previous version. A version that commits too early does not find this
/// row.
TEST_CASE("RocketMQ: the messages of a group of a FIFO topic keep their order, also if some fail") {
  RocketMqBroker broker;
  (void)broker.create("fifo", true);
  constexpr int keys = 10;
  constexpr int versions = 20;
  for (int version = 1; version <= versions; ++version) {
    for (int key = 0; key < keys; ++key) {
      broker.publish("fifo", std::to_string(key) + "/" + std::to_string(version), "k" + std::to_string(key));
    }
  }
  broker.flush();
  EffectDatabase db;
  db.run("create table account (id varchar(20) primary key, version integer not null)");
  for (int key = 0; key < keys; ++key) db.run("insert into account values ('" + std::to_string(key) + "', 0)");
  Pool pool = db.pool(4);
  TxConsumer consumer(pool, "svc");
  const auto source = open_rocketmq(RocketMqBroker::options("fifo"));
  std::atomic<int> too_early = 0;
  std::mutex mutex;
  std::set<std::string> failed;
  RunOptions options = until_idle(12s);
  options.workers = 3;
  const RunSummary summary = run(
      *source, consumer, body_is_key(),
      [&](soci::session& sql, Delivery& delivery) {
        CHECK(delivery.incoming().lane);
        const std::string& key = delivery.message().business_key;
        const auto slash = key.find('/');
        const int version = std::stoi(key.substr(slash + 1));
        const long long changed =
            execute(sql, delivery, "update account set version = :new where id = :id and version = :old", version,
                    key.substr(0, slash), version - 1);
        if (changed != 1) ++too_early;
        add_effect(sql, delivery);
        const std::lock_guard lock(mutex);
        if (version % 7 == 3 && failed.insert(key).second) throw std::runtime_error("not yet");
      },
      options);
  CHECK(summary.consumed == keys * versions);
  CHECK(db.effects() == keys * versions);
  CHECK(failed.size() >= keys);
  CHECK(too_early == 0);
  CHECK(db.number("select count(*) from account where version = " + std::to_string(versions)) == keys);
}

TEST_CASE("RocketMQ: if the topic or the group is missing at the start, run ends with an error that names it") {
  RocketMqBroker broker;
  (void)broker.create("there");
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  const auto error_of = [&](auto change) {
    RocketMqOptions options = RocketMqBroker::options("there");
    change(options);
    const auto source = open_rocketmq(options);
    return thrown_by([&] { (void)run(*source, consumer, body_is_key(), add_effect, until_idle(20s)); });
  };
  CHECK(error_of([](auto&) {}) == "nothing");
  CHECK(error_of([](auto& o) { o.topic = "missing"; }) == "broker_refused");
  CHECK(error_of([](auto& o) { o.group = "missing"; }) == "broker_refused");
  CHECK(error_of([](auto& o) { o.topic = "a b"; }) == "broker_refused");
}

TEST_CASE("RocketMQ: the publisher returns a result for each message") {
  RocketMqBroker broker;
  (void)broker.create("published");
  const auto results =
      broker.publish({{.topic = "published", .key = "a", .payload = "1", .id = "i1"},
                      {.topic = "missing", .key = "b", .payload = "2", .id = "i2"},
                      {.topic = "published", .key = "c", .payload = std::string(5'000'000, 'x'), .id = "i3"},
                      {.topic = "published", .key = "", .payload = "", .id = "i4"},
                      {.topic = "published", .key = "d", .payload = "5", .id = "i5"}});
  REQUIRE(results.size() == 5);
  CHECK(results[0].status == PublishStatus::confirmed);
  CHECK(results[1].status == PublishStatus::failed);
  CHECK(results[1].error.find("topic 'missing'") != std::string::npos);
  CHECK(results[2].status == PublishStatus::rejected);
  CHECK(results[4].status == PublishStatus::confirmed);
  CHECK(results[3].status == PublishStatus::rejected);  // the broker refuses an empty body
  const Publisher nobody = rocketmq_publisher({.server = {.host = "127.0.0.1", .port = 1}, .timeout = 1s});
  const OutgoingMessage message{.topic = "t", .payload = "1", .id = "i"};
  CHECK_THROWS_AS((void)nobody({&message, 1}), std::runtime_error);
}

}  // namespace
}  // namespace txinbox::test
