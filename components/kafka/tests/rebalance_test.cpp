// Consumers join and leave. The messages of every partition must be consumed without long pauses, and each message must
// take effect once.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "kafka_broker.hpp"
#include "support/counts.hpp"
#include "support/effects.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

constexpr int partitions = 4;

/// The counters that all members of a group share.
struct Group {
  using Clock = std::chrono::steady_clock;

  std::chrono::microseconds work{0};  ///< How long each message takes.
  std::atomic<int> failures = 0;
  std::atomic<std::uint64_t> consumed = 0, duplicates = 0;

  /// Records how long the message's partition has made no progress. Message N is in partition N % 4.
  void ran(const std::string& key) {
    const auto now = Clock::now();
    const std::lock_guard lock(mutex_);
    auto& last = last_.at(std::stoul(key.substr(1)) % partitions);
    longest_ = std::max(longest_, now - last);
    last = now;
  }

  double longest_standstill() {
    const std::lock_guard lock(mutex_);
    return std::chrono::duration<double>(longest_).count();
  }

 private:
  std::mutex mutex_;
  std::array<Clock::time_point, partitions> last_ = {Clock::now(), Clock::now(), Clock::now(), Clock::now()};
  Clock::duration longest_{};
};

/// One member of the group. It runs on a separate thread.
class Member {
 public:
  Member(const EffectDatabase& db, const KafkaOptions& kafka, Group& group, std::size_t batch = 5)
      : pool_(db.pool()),
        consumer_(pool_, "svc", {.stop = stop_.get_token()}),
        source_(open_kafka(kafka)),
        group_(group),
        batch_(batch) {
    thread_ = std::jthread([this] { consume(); });
  }
  ~Member() {
    stop_.request_stop();
    thread_.join();
    group_.consumed += summary_.consumed;
    group_.duplicates += summary_.already_consumed;
  }

 private:
  void consume() {
    RunOptions options{.batch = batch_, .backoff = 50ms, .max_backoff = 400ms};
    summary_ = run(
        *source_, consumer_, [](const Incoming& in) { return Message{.business_key = std::string(in.body)}; },
        [this](soci::session& sql, Delivery& delivery) {
          add_effect(sql, delivery);
          std::this_thread::sleep_for(group_.work);
          const std::string& key = delivery.message().business_key;
          // The partition of this message is paused for a while, and may be revoked during this time.
          if (key == "m1001" && ++group_.failures < 12) throw std::runtime_error("not yet");
          group_.ran(key);
        },
        options);
  }

  std::stop_source stop_;
  Pool pool_;
  TxConsumer consumer_;
  std::unique_ptr<Source> source_;
  Group& group_;
  const std::size_t batch_;
  RunSummary summary_;
  std::jthread thread_;
};

/// Members join and leave every three seconds, while messages arrive in every partition. In the steps kafka-kills-…,
/// this lasts for two minutes. Fewer than 1 % of the messages arrive again, and no partition stands still for more than
/// 10 s.
void join_and_leave(const std::string& topic, const std::string& strategy) {
  CAPTURE(strategy);
  const bool is_long = std::getenv("TXINBOX_BROKER_KILLS") != nullptr;
  const int joins = is_long ? 40 : 4;
  KafkaBroker broker;
  (void)broker.create(topic);
  EffectDatabase db;
  KafkaOptions kafka = broker.options(topic);
  kafka.properties["partition.assignment.strategy"] = strategy;
  Group group;
  int published = 0;
  {
    const Member stays(db, kafka, group);
    std::jthread producer([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        for (int i = 0; i < 10 * partitions; ++i, ++published) {
          broker.publisher().publish(topic,
                                     {.body = "m" + std::to_string(published), .partition = published % partitions});
        }
        broker.flush();
        std::this_thread::sleep_for(100ms);
      }
    });
    for (int joined = 0; joined < joins; ++joined) {
      const Member guest(db, kafka, group);
      std::this_thread::sleep_for(3s);
    }
    producer.request_stop();
    producer.join();
    const auto give_up = std::chrono::steady_clock::now() + 2min;
    while (db.effects() < published && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(50ms);
  }
  count(joins, "members joined and left");
  count(published, "messages");
  count(group.duplicates, "duplicates");
  note(strategy + ": the longest standstill of a partition: " + std::to_string(group.longest_standstill()) + " s");
  // The bound comes from the design, and not from the speed of the machine. Only rebalances and the backoff of one
  // message (at most 4 s in all) delay a partition.
  CHECK(group.longest_standstill() <= 10);
  CHECK(group.failures >= 12);
  CHECK(db.effects() == published);
  CHECK(group.consumed == static_cast<std::uint64_t>(published));
  CHECK(group.duplicates * 100 < static_cast<std::uint64_t>(published));
}

TEST_CASE("Kafka: consumers join and leave, with a cooperative assignor") {
  join_and_leave("cooperative", "cooperative-sticky");
}

TEST_CASE("Kafka: consumers join and leave, with an eager assignor") { join_and_leave("eager", "range"); }

TEST_CASE("Kafka: consumers that join at a backlog take only the partitions that move") {
  constexpr int messages = 40'000;
  KafkaBroker broker;
  (void)broker.create("backlog");
  for (int i = 0; i < messages; ++i) {
    broker.publisher().publish("backlog", {.body = "m" + std::to_string(i), .partition = i % partitions});
  }
  broker.flush();
  EffectDatabase db;
  KafkaOptions kafka = broker.options("backlog");
  kafka.properties["session.timeout.ms"] = "6000";
  kafka.properties["partition.assignment.strategy"] = "cooperative-sticky";
  Group group;
  group.failures = 1000;  // no message fails
  group.work = 300us;
  {
    // When the second member joins, the first one reads ahead, and has acknowledged nothing of some partitions.
    const auto give_up = std::chrono::steady_clock::now() + 2min;
    const Member first(db, kafka, group, 100);
    while (db.effects() == 0 && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(5ms);
    const Member second(db, kafka, group, 100);
    while (db.effects() < messages && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(50ms);
  }
  count(messages, "messages");
  count(group.duplicates, "duplicates");
  CHECK(db.effects() == messages);
  CHECK(group.duplicates * 100 < static_cast<std::uint64_t>(messages));
}

TEST_CASE("Kafka: a consumer can leave at any time after it has joined") {
  KafkaBroker broker;
  (void)broker.create("short");
  KafkaOptions kafka = broker.options("short");
  kafka.dead_letters = "";
  kafka.properties["partition.assignment.strategy"] = "cooperative-sticky";
  const auto stays = open_kafka(kafka);
  for (int i = 0; i < 15; ++i) {
    const auto guest = open_kafka(kafka);
    for (int polls = 0; polls < i; ++polls) {
      (void)guest->poll(1, 3ms);
      if (i % 3 != 0) (void)stays->poll(1, 1ms);  // without the poll, the guest waits for its assignment
    }
    guest->close();
  }
}

}  // namespace
}  // namespace txinbox::test
