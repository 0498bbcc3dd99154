// All at the same time: several workers, messages that fail, duplicates, dead letters, and lanes that are taken back.

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/memory_broker.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

constexpr int lanes = 4;
constexpr int accounts = 15;
constexpr int versions = 20;

/// A random decision that depends only on the key, so that a run can be repeated.
bool chance(const std::string& key, unsigned salt, unsigned percent) {
  std::minstd_rand random(static_cast<unsigned>(std::hash<std::string>()(key)) + salt);
  random.discard(3);
  return random() % 100 < percent;
}

void publish_versions(MemoryBroker& broker) {
  for (int version = 1; version <= versions; ++version) {
    for (int account = 0; account < accounts; ++account) {
      const std::string key = "a" + std::to_string(account);
      const std::string body = key + "-" + std::to_string(version);
      const int lane = account % lanes;
      broker.publish(lane, {.body = body, .key = key});
      if (chance(body, 1, 20)) broker.publish(lane, {.body = body, .key = key});
      if (chance(body, 2, 5)) broker.publish(lane, {.body = "", .key = key});
    }
  }
}

TEST_CASE("many workers, failures, duplicates, dead letters and lost lanes: each key takes effect once, in order" *
          doctest::test_suite("timed")) {
  for (const Ordering order : {Ordering::lane, Ordering::key}) {
    CAPTURE(to_string(order));
    EffectDatabase db;
    db.run("create table version (account varchar(16) not null primary key, number int not null)");
    for (int account = 0; account < accounts; ++account) {
      db.run("insert into version values ('a" + std::to_string(account) + "', 0)");
    }
    Pool pool = db.pool(5);
    TxConsumer consumer(pool, "order-service");
    MemoryBroker broker(lanes);
    publish_versions(broker);
    MemorySource source(broker);

    std::mutex mutex;
    std::map<std::string, int> runs;
    std::atomic<bool> overtook = false;
    const auto handler = [&](soci::session& sql, Delivery& delivery) {
      const std::string& key = delivery.message().business_key;
      const auto dash = key.find('-');
      const std::string account = key.substr(0, dash);
      const int version = std::stoi(key.substr(dash + 1));
      int number = -1;
      sql << "select number from version where account = :a", soci::use(account), soci::into(number);
      if (number != version - 1) overtook = true;
      sql << "update version set number = :n where account = :a", soci::use(version), soci::use(account);
      add_effect(sql, delivery);
      int run = 0;
      {
        const std::lock_guard lock(mutex);
        run = ++runs[key];
      }
      if (run <= 2 && chance(key, 3, 6)) throw std::runtime_error("not yet");
      if (run <= 2 && chance(key, 4, 3)) throw RetryLater(1ms);
    };

    std::atomic<bool> is_over = false;
    std::jthread taking_back([&] {
      for (std::size_t i = 0; !is_over; ++i) {
        std::this_thread::sleep_for(15ms);
        if (i < 12) source.take_back(i % lanes);
      }
    });
    RunOptions options;
    options.batch = 6;
    options.workers = 4;
    options.order = order;
    options.backoff = 1ms;
    options.max_backoff = 5ms;
    options.idle_exit = 250ms;
    const RunSummary summary = run(
        source, consumer, [](const Incoming& in) { return Message{.business_key = std::string(in.body)}; }, handler,
        options);
    is_over = true;
    taking_back.join();

    CHECK_FALSE(overtook);
    CHECK(db.effects() == accounts * versions);
    CHECK(summary.consumed == accounts * versions);
    CHECK(db.number("select min(number) from version") == versions);
    CHECK(broker.wrong_acknowledgements() == 0);
    CHECK(broker.letters().size() >= summary.dead_letters);
    // All messages are acknowledged, so a new source has no messages.
    MemorySource next(broker);
    CHECK(next.status().lag == 0);
  }
}

}  // namespace
}  // namespace txinbox::test
