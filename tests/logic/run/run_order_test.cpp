// The loop between a broker and a consumer: lanes, keys, and which messages wait after a failure.

#include <atomic>
#include <map>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/memory_broker.hpp"
#include "support/run_kit.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("a message that fails stops only its lane, and no later message of the lane is acknowledged") {
  EffectDatabase db;
  Pool pool = db.pool();
  MemoryBroker broker(4);
  for (int i = 0; i < 400; ++i) broker.publish(i % 4, {.body = numbered(numbered("lane", i % 4), i / 4)});
  MemorySource source(broker);
  std::stop_source stop;
  TxConsumer consumer(pool, "order-service", {.stop = stop.get_token()});
  RunOptions options = until_idle();
  options.idle_exit.reset();
  options.batch = 10;
  std::atomic<int> failures = 0;
  const RunSummary summary = run(
      source, consumer, body_is_key,
      [&](soci::session& sql, Delivery& delivery) {
        add_effect(sql, delivery);
        if (delivery.message().business_key != "lane-1-50") return;
        if (++failures > 10 && broker.acknowledged_in_all() == 350) stop.request_stop();
        throw std::runtime_error("no stock");
      },
      options);
  CHECK(summary.consumed == 350);
  CHECK(summary.retries >= 5);
  CHECK(broker.acknowledged(0) == 100);
  CHECK(broker.acknowledged(1) == 50);
  CHECK(broker.acknowledged(2) == 100);
  CHECK(broker.acknowledged(3) == 100);
  CHECK(db.effects() == 350);
  CHECK(broker.wrong_acknowledgements() == 0);
  CHECK(source.pauses() == 1);

  // The broker delivers again the messages that were not acknowledged.
  MemorySource next(broker);
  TxConsumer started_again(pool, "order-service");
  CHECK(run(next, started_again, body_is_key, add_effect, until_idle()).consumed == 50);
  CHECK(broker.acknowledged_in_all() == 400);
  CHECK(db.effects() == 400);
}

TEST_CASE("a paused lane continues when its message succeeds") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  MemoryBroker broker(1);
  for (int i = 0; i < 200; ++i) broker.publish(numbered("order", i));
  MemorySource source(broker);
  RunOptions options = until_idle();
  options.batch = 5;
  RunLog log;
  const RunSummary summary = run(
      source, consumer, body_is_key,
      [&](soci::session& sql, Delivery& delivery) {
        add_effect(sql, delivery);
        log.add(delivery.message().business_key);
        if (delivery.message().business_key == "order-7" && log.count("order-7") < 12) throw std::runtime_error("no");
      },
      options);
  CHECK(summary.consumed == 200);
  CHECK(broker.acknowledged() == 200);
  CHECK(source.pauses() > 0);
  CHECK(source.resumes() == source.pauses());
  CHECK(broker.wrong_acknowledgements() == 0);
}

/// The last run of each key. This is the run that committed.
std::vector<std::string> last_runs(const std::vector<std::string>& keys) {
  std::map<std::string, std::size_t> last;
  for (std::size_t i = 0; i < keys.size(); ++i) last[keys[i]] = i;
  std::vector<std::string> ordered;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (last[keys[i]] == i) ordered.push_back(keys[i]);
  }
  return ordered;
}

void check_versions_ascend(const std::vector<std::string>& keys) {
  std::map<std::string, int> version;
  for (const std::string& key : last_runs(keys)) {
    const auto dash = key.rfind('-');
    const int number = std::stoi(key.substr(dash + 1));
    int& before = version[key.substr(0, dash)];
    CHECK_MESSAGE(number == before + 1, key << " committed after version " << before);
    before = number;
  }
}

TEST_CASE("the versions of an account commit in order, although some fail at first") {
  EffectDatabase db;
  Pool pool = db.pool(5);
  TxConsumer consumer(pool, "order-service");
  for (const Ordering order : {Ordering::lane, Ordering::key}) {
    CAPTURE(to_string(order));
    db.run("delete from txinbox_consumed_message");
    MemoryBroker broker(3);
    for (int version = 1; version <= 12; ++version) {
      for (int account = 0; account < 20; ++account) {
        const std::string key = numbered("account", account);
        broker.publish(account % 3, {.body = numbered(key, version), .key = key});
      }
    }
    MemorySource source(broker);
    RunOptions options = until_idle();
    options.batch = 7;
    options.workers = 4;
    options.order = order;
    RunLog log;
    const RunSummary summary =
        run(source, consumer, body_is_key,
            failing_at_first(log, 3, [](const std::string& key) { return key.ends_with("-5"); }), options);
    CHECK(summary.consumed == 240);
    CHECK(summary.retries > 0);
    CHECK(broker.acknowledged_in_all() == 240);
    CHECK(broker.wrong_acknowledgements() == 0);
    check_versions_ascend(log.keys());
  }
}

TEST_CASE("with Ordering::key, a message that fails does not stop the other keys of its lane") {
  EffectDatabase db;
  Pool pool = db.pool();
  MemoryBroker broker(1);
  for (int i = 0; i < 40; ++i) broker.publish(0, {.body = numbered("order", i), .key = numbered("key", i % 4)});
  MemorySource source(broker);
  std::stop_source stop;
  TxConsumer consumer(pool, "order-service", {.stop = stop.get_token()});
  RunOptions options = until_idle();
  options.idle_exit.reset();
  options.order = Ordering::key;
  options.batch = 10;
  (void)run(
      source, consumer, body_is_key,
      [&](soci::session& sql, Delivery& delivery) {
        add_effect(sql, delivery);
        if (delivery.message().business_key != "order-5") return;
        if (db.effects() == 31) stop.request_stop();  // all except order-5 and the later ones of its key
        throw std::runtime_error("no stock");
      },
      options);
  CHECK(db.effects() == 31);
  CHECK(broker.acknowledged() == 5);
  CHECK(broker.wrong_acknowledgements() == 0);
}

}  // namespace
}  // namespace txinbox::test
