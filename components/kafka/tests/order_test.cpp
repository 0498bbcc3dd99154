// The order of a key with a real broker: versions of an account, of which some fail, and a message that always fails.

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/soci/execute.hpp>
#include <txinbox/txinbox.hpp>

#include "kafka_broker.hpp"
#include "support/effects.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

MessageOf body_is_key() {
  return [](const Incoming& in) { return Message{.business_key = std::string(in.body)}; };
}

/// Each version of an account updates the row of the previous version. A version that commits too early does not find
/// this row.
void no_version_passes_another(Ordering order) {
  constexpr int accounts = 100;
  constexpr int versions = 10;
  CAPTURE(to_string(order));
  KafkaBroker broker;
  const std::string topic = "versions-" + std::string(to_string(order));
  (void)broker.create(topic);
  EffectDatabase db;
  db.run("create table account (id varchar(20) primary key, version integer not null)");
  for (int account = 0; account < accounts; ++account) {
    db.run("insert into account values ('a" + std::to_string(account) + "', 0)");
  }
  for (int version = 1; version <= versions; ++version) {
    for (int account = 0; account < accounts; ++account) {
      const std::string key = "a" + std::to_string(account);
      for (int copy = 0; copy < 2; ++copy) broker.publish(topic, key + "-" + std::to_string(version), key);
    }
  }
  broker.flush();
  Pool pool = db.pool(4);
  TxConsumer consumer(pool, "svc");
  const auto source = open_kafka(broker.options(topic));
  std::atomic<int> too_early = 0;
  std::mutex mutex;
  std::set<std::string> failed;
  const RunSummary summary =
      run(*source, consumer, body_is_key(),
          [&](soci::session& sql, Delivery& delivery) {
            const std::string& key = delivery.message().business_key;
            const auto dash = key.find('-');
            const int version = std::stoi(key.substr(dash + 1));
            const int account = std::stoi(key.substr(1, dash - 1));
            const long long changed =
                execute(sql, delivery, "update account set version = :new where id = :id and version = :old", version,
                        key.substr(0, dash), version - 1);
            if (changed != 1) ++too_early;
            add_effect(sql, delivery);
            const std::lock_guard lock(mutex);
            if ((account + 7 * version) % 20 == 0 && failed.insert(key).second) throw std::runtime_error("not yet");
          },
          {.batch = 20, .workers = 3, .order = order, .backoff = 5ms, .max_backoff = 50ms, .idle_exit = 4s});
  CHECK(too_early == 0);
  CHECK(failed.size() == accounts * versions / 20);
  CHECK(summary.consumed == accounts * versions);
  CHECK(summary.already_consumed == accounts * versions);
  CHECK(db.effects() == accounts * versions);
  CHECK(db.number("select count(*) from account where version = " + std::to_string(versions)) == accounts);
}

TEST_CASE("Kafka: no version of an account commits before a smaller one, although some fail at first") {
  for (const Ordering order : {Ordering::lane, Ordering::key}) no_version_passes_another(order);
}

TEST_CASE("Kafka: a message that always fails is parked and dead-lettered, and its partition continues") {
  KafkaBroker broker;
  (void)broker.create("parked");
  for (int i = 0; i < 80; ++i) {
    broker.publisher().publish("parked", {.body = "m" + std::to_string(i), .partition = i % 4});
  }
  broker.flush();
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc", {.max_attempts = 3});
  const auto source = open_kafka(broker.options("parked"));
  const RunSummary summary = run(*source, consumer, body_is_key(),
                                 [](soci::session& sql, Delivery& delivery) {
                                   add_effect(sql, delivery);
                                   if (delivery.message().business_key == "m21") throw std::runtime_error("always");
                                 },
                                 {.batch = 10, .backoff = 5ms, .max_backoff = 50ms, .idle_exit = 4s});
  CHECK(summary.consumed == 79);
  CHECK(summary.dead_letters == 1);
  CHECK(summary.acknowledged == 80);
  CHECK(db.effects() == 79);
  CHECK(db.effects_of("m21") == 0);

  KafkaOptions dead = broker.options("parked");
  dead.topics = {"parked.dead"};
  dead.group = "readers";
  dead.dead_letters = "";
  const auto letters = open_kafka(dead);
  TxConsumer reader(pool, "reader");
  int found = 0;
  (void)run(*letters, reader, key_from("@header:txinbox-key"),
            [&](soci::session&, Delivery& delivery) {
              ++found;
              const Incoming& in = delivery.incoming();
              CHECK(in.body == "m21");
              CHECK(in.header("txinbox-reason") == "parked");
              CHECK(in.header("txinbox-origin") == "parked/1@5");
            },
            {.idle_exit = 4s, .dead_letter = [](const DeadLetter&) {}});
  CHECK(found == 1);
}

}  // namespace
}  // namespace txinbox::test
