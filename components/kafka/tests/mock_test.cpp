// Failing requests, with librdkafka's mock cluster: a test cannot make a real broker fail.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/kafka.hpp>
#include <txinbox/txinbox.hpp>

#include "client.hpp"
#include "failing_firsts.hpp"
#include "mock_cluster.hpp"
#include "publisher.hpp"
#include "support/effects.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

// The numbers of the requests in Kafka's protocol.
constexpr std::int16_t produce = 0;
constexpr std::int16_t offset_commit = 8;
constexpr std::int16_t sync_group = 14;

TEST_CASE("Kafka: if a commit of offsets fails, the worst result is duplicates" * doctest::test_suite("timed")) {
  for (const auto code :
       {RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID, RD_KAFKA_RESP_ERR_NOT_COORDINATOR}) {
    const std::string name = rd_kafka_err2name(code);
    CAPTURE(name);
    MockCluster cluster;
    cluster.create("orders");
    Publisher publisher(cluster.brokers());
    for (int i = 0; i < 100; ++i) publisher.publish("orders", {.body = "m" + std::to_string(i), .partition = i % 2});
    publisher.flush();
    EffectDatabase db;
    Pool pool = db.pool();
    const KafkaOptions kafka = cluster.consumer("g", "orders");
    // This is longer than the session: a partition may belong to a member that has left, until its session expires.
    RunOptions options{.batch = 10, .idle_exit = 12s};
    options.dead_letter = [](const DeadLetter&) {};
    cluster.fail(offset_commit, code, code, code);
    std::uint64_t consumed = 0;
    for (int round = 0; round < 2; ++round) {
      // The first consumer stops when all messages are consumed. The second one gets the messages whose offsets were
      // not committed.
      std::stop_source stop;
      const auto listener = on_event([&](const RunEvent& event) {
        if (round == 0 && event.type == RunEventType::acknowledged && db.effects() == 100) stop.request_stop();
      });
      TxConsumer consumer(pool, "svc", {.stop = stop.get_token(), .listeners = {listener}});
      const auto source = open_kafka(kafka);
      consumed +=
          run(
              *source, consumer, [](const Incoming& in) { return Message{.business_key = std::string(in.body)}; },
              add_effect, options)
              .consumed;
    }
    CHECK(consumed == 100);
    CHECK(db.effects() == 100);
  }
}

TEST_CASE("Kafka: a dead letter that fails is published again, also after a fatal error of the producer") {
  // The client retries after the first code. The second code is for the operator. The third code is fatal for an
  // idempotent producer.
  for (const auto code : {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
                          RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER}) {
    const std::string name = rd_kafka_err2name(code);
    CAPTURE(name);
    MockCluster cluster;
    cluster.create("orders");
    cluster.create("orders.dead");
    Publisher publisher(cluster.brokers());
    publisher.publish("orders", {.body = "bad", .partition = 0});
    publisher.publish("orders", {.body = "good", .partition = 0});
    publisher.flush();
    EffectDatabase db;
    Pool pool = db.pool();
    KafkaOptions kafka = cluster.consumer("g", "orders");
    kafka.dead_letters = "orders.dead";
    const auto source = open_kafka(kafka);
    cluster.fail(produce, code);
    std::stop_source stop;
    RunOptions options{.backoff = 5ms, .max_backoff = 50ms};
    int failures = 0;
    std::string warning;
    const auto listener = on_event([&](const RunEvent& event) {
      if (event.type == RunEventType::acknowledged && db.effects() == 1) stop.request_stop();
      if (event.type == RunEventType::dead_letter_failed) ++failures;
      if (event.type == RunEventType::source && event.source_event->type == SourceEventType::warning) {
        warning = event.source_event->text;
      }
    });
    TxConsumer consumer(pool, "svc", {.stop = stop.get_token(), .listeners = {listener}});
    const RunSummary summary = run(
        *source, consumer,
        [](const Incoming& in) {
          if (in.body == "bad") throw Error(ErrorCode::invalid_key, "bad");
          return Message{.business_key = std::string(in.body)};
        },
        add_effect, options);
    CHECK(summary.dead_letters == 1);
    CHECK(summary.acknowledged == 2);
    CHECK((failures > 0) == (code != RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS));
    if (failures > 0) CHECK_MESSAGE(warning.find("orders.dead") != std::string::npos, warning);
  }
}

TEST_CASE("Kafka: an unconfirmed message fails only if a broker answers" * doctest::test_suite("timed")) {
  std::optional<MockCluster> cluster(std::in_place);
  cluster->create("orders");
  for (int i = 0; i < 50; ++i) {
    cluster->fail(produce, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS);
  }
  const auto publish = kafka_publisher({.brokers = cluster->brokers(), .timeout = 1s});
  const std::vector<OutgoingMessage> one{{.topic = "orders", .key = "k", .payload = "body", .id = "1"}};
  const auto results = publish(one);
  REQUIRE(results.size() == 1);
  CHECK(results[0].status == PublishStatus::failed);
  cluster.reset();
  CHECK_THROWS_AS(publish(one), std::runtime_error);
}

TEST_CASE("Kafka: with little room, any number of partitions can wait for their first message") {
  MockCluster cluster;
  cluster.create("orders", 24);
  const KafkaOptions kafka = cluster.consumer("g", "orders");
  CHECK(consume_with_failing_firsts(kafka, {.partitions = 24, .messages_each = 60, .failures_each = 4}) > 0);
}

TEST_CASE("Kafka: a source is at its end when it has its partitions and no message waits in any of them") {
  MockCluster cluster;
  cluster.create("orders", 2);
  Publisher publisher(cluster.brokers());
  const auto publish = [&](int count) {
    for (int i = 0; i < count; ++i) publisher.publish("orders", {.body = "m", .partition = i % 2});
    publisher.flush();
  };
  publish(6);
  const auto source = open_kafka(cluster.consumer("g", "orders"));
  CHECK(source->status().at_end == false);
  const auto poll_until_end = [&] {
    std::size_t received = 0;
    for (int i = 0; i < 300 && source->status().at_end == false; ++i) received += source->poll(1, 100ms).size();
    return received;
  };
  CHECK(poll_until_end() == 6);
  CHECK(source->status().lanes == 2);
  CHECK(source->status().at_end == true);
  publish(4);
  // A partition is at its end until the client has fetched one of the new messages from it.
  std::size_t received = 0;
  std::set<std::uint64_t> lanes;
  for (int i = 0; i < 100 && lanes.size() < 2; ++i) {
    for (const Incoming& each : source->poll(1, 100ms)) {
      lanes.insert(each.lane.value());
      ++received;
    }
  }
  CHECK(received + poll_until_end() == 4);
}

// librdkafka before 2.3.0 aborts the process if such a client is destroyed.
/// The client's threads wait in its log while this is true.
std::atomic<bool> log_waits = false;

TEST_CASE("Kafka: the destruction of a client is bounded") {
  const auto make = [] {
    kafka::Conf conf(rd_kafka_conf_new());
    kafka::set(conf.get(), "debug", "all");
    rd_kafka_conf_set_log_cb(conf.get(),
                             [](const rd_kafka_t*, int, const char*, const char*) { log_waits.wait(true); });
    return kafka::make_client(RD_KAFKA_PRODUCER, std::move(conf)).release();
  };
  CHECK(kafka::destroy_within(1min, make()));
  rd_kafka_t* const kept = make();
  log_waits = true;
  CHECK_FALSE(kafka::destroy_within(100ms, kept));
  log_waits = false;
  log_waits.notify_all();
}

TEST_CASE("Kafka: a consumer that has joined and has no assignment yet can leave") {
  MockCluster cluster;
  cluster.create("orders");
  for (int i = 0; i < 50; ++i) {
    cluster.fail(sync_group, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS);
  }
  KafkaOptions options = cluster.consumer("g", "orders");
  options.properties["partition.assignment.strategy"] = "cooperative-sticky";
  const auto source = open_kafka(options);
  const auto has_joined = std::chrono::steady_clock::now() + 6s;
  while (std::chrono::steady_clock::now() < has_joined) CHECK(source->poll(1, 100ms).empty());
  CHECK(source->status().lanes == 0);
  CHECK(source->status().at_end == false);
  source->close();
}

}  // namespace
}  // namespace txinbox::test
