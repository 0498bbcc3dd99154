// Consumers that join and leave: every partition goes on, and nothing is lost or doubled.

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "kafka_broker.hpp"
#include "support/effects.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

constexpr int messages = 6000;

/// One member of the group, on a thread of its own.
class Member {
 public:
  Member(const EffectDatabase& db, const KafkaOptions& kafka, std::atomic<int>& failures)
      : pool_(db.pool()), consumer_(pool_, "svc"), source_(open_kafka(kafka)), failures_(failures) {
    thread_ = std::jthread([this] { consume(); });
  }
  ~Member() { stop(); }

  void stop() {
    stop_.request_stop();
    if (thread_.joinable()) thread_.join();
  }

  const RunSummary& summary() const { return summary_; }

 private:
  void consume() {
    RunOptions options{.batch = 5, .backoff = 50ms, .max_backoff = 400ms, .stop = stop_.get_token()};
    summary_ = run(
        *source_, consumer_, [](const Incoming& in) { return Message{.business_key = std::string(in.body)}; },
        [this](soci::session& sql, Delivery& delivery) {
          add_effect(sql, delivery);
          std::this_thread::sleep_for(1ms);
          // Its partition is paused for a while, and may be revoked meanwhile.
          if (delivery.message().business_key == "m1001" && ++failures_ < 12) throw std::runtime_error("not yet");
        },
        options);
  }

  Pool pool_;
  TxConsumer consumer_;
  std::unique_ptr<Source> source_;
  std::atomic<int>& failures_;
  std::stop_source stop_;
  RunSummary summary_;
  std::jthread thread_;
};

void join_and_leave(const std::string& topic, const std::string& strategy) {
  CAPTURE(strategy);
  KafkaBroker broker;
  (void)broker.create(topic);
  for (int i = 0; i < messages; ++i) {
    broker.publisher().publish(topic, {.body = "m" + std::to_string(i), .partition = i % 4});
  }
  broker.flush();
  EffectDatabase db;
  KafkaOptions kafka = broker.options(topic);
  kafka.properties["partition.assignment.strategy"] = strategy;
  std::atomic<int> failures = 0;
  Member stays(db, kafka, failures);
  const auto give_up = std::chrono::steady_clock::now() + 5min;
  int joined = 0;
  std::uint64_t consumed = 0;
  std::uint64_t duplicates = 0;
  while (db.effects() < messages && std::chrono::steady_clock::now() < give_up) {
    Member guest(db, kafka, failures);
    ++joined;
    std::this_thread::sleep_for(2s);
    guest.stop();
    consumed += guest.summary().consumed;
    duplicates += guest.summary().already_consumed;
  }
  stays.stop();
  consumed += stays.summary().consumed;
  duplicates += stays.summary().already_consumed;
  MESSAGE(strategy << ": joined " << joined << " times, " << duplicates << " duplicates");
  CHECK(db.effects() == messages);
  CHECK(consumed == messages);
}

TEST_CASE("Kafka: consumers join and leave, with a cooperative assignor") {
  join_and_leave("cooperative", "cooperative-sticky");
}

TEST_CASE("Kafka: consumers join and leave, with an eager assignor") { join_and_leave("eager", "range"); }

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
      if (i % 3 != 0) (void)stays->poll(1, 1ms);  // else the guest waits for its assignment
    }
    guest->close();
  }
}

}  // namespace
}  // namespace txinbox::test
