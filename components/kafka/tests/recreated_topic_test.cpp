// A topic of a real broker is deleted and created again while a consumer reads it.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/kafka.hpp>

#include "admin.hpp"
#include "brokers/broker_under_test.hpp"
#include "publisher.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using Properties = std::map<std::string, std::string>;

/// A topic with two partitions and its consumer, which acknowledges at once what it gets.
class Reader {
 public:
  Reader(std::string topic, Properties properties) : topic_(std::move(topic)) {
    admin_.create(topic_, 2);
    for (const int partition : {0, 1})
      admin_.commit(topic_, topic_, partition, 0);  // so auto.offset.reset does not count
    properties.try_emplace("session.timeout.ms", "6000");
    source_ = open_kafka(
        {.brokers = broker_address(), .group = topic_, .topics = {topic_}, .properties = std::move(properties)});
    source_->on_event([this](const SourceEvent& event) { ++events_[event.type]; });
    REQUIRE(poll_until([this] { return source_->status().lanes == 2; }));
  }

  void publish(const std::string& prefix, int from, int to) {
    Publisher publisher(broker_address());
    for (int i = from; i < to; ++i) {
      publisher.publish(topic_, {.body = prefix + std::to_string(i), .partition = i % 2});
    }
    publisher.flush();
  }

  bool poll_until(const std::function<bool()>& condition) {
    const auto give_up = std::chrono::steady_clock::now() + 1min;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > give_up) return false;
      std::vector<Incoming> got = source_->poll(50, 50ms);
      std::vector<const Incoming*> done;
      for (Incoming& each : got) {
        seen_.insert(std::string(each.body));
        if (keeps) kept_.push_back(each);
        if (!keeps) done.push_back(&each);
      }
      source_->acknowledge(done);
    }
    return true;
  }

  bool sees(std::size_t count) {
    return poll_until([&] { return seen_.size() == count; });
  }

  bool commits(std::int64_t offset) {
    return poll_until(
        [&] { return admin_.committed(topic_, topic_, 0) == offset && admin_.committed(topic_, topic_, 1) == offset; });
  }

  void create_again() {
    for (int tries = 0;; ++tries) {
      try {
        admin_.create(topic_, 2);
        return;
      } catch (const std::runtime_error&) {
        if (tries == 100) throw;  // the broker still deletes the old topic
      }
    }
  }

  Admin& admin() { return admin_; }
  Source& source() { return *source_; }
  const std::vector<Incoming>& kept() const { return kept_; }
  int count(SourceEventType type) { return events_[type]; }

  bool keeps = false;  ///< Whether it keeps what it gets and does not acknowledge it.

 private:
  const std::string topic_;
  Admin admin_{broker_address()};
  std::map<SourceEventType, int> events_;
  std::set<std::string> seen_;
  std::vector<Incoming> kept_;
  std::unique_ptr<Source> source_;
};

TEST_CASE("Kafka: a topic that was deleted and created again is consumed from its start") {
  for (const std::string strategy : {"cooperative-sticky", "range"}) {
    CAPTURE(strategy);
    const std::string topic = "again-" + strategy;
    Reader reader(topic, {{"partition.assignment.strategy", strategy}});
    reader.publish("old", 0, 200);
    REQUIRE(reader.sees(200));
    REQUIRE(reader.commits(100));
    reader.admin().remove(topic);
    REQUIRE(reader.poll_until([&] { return reader.source().status().lanes == 0; }));
    CHECK(reader.count(SourceEventType::warning) > 0);
    reader.create_again();
    reader.publish("new", 0, 2000);  // the new topic has more messages than the old one
    CHECK(reader.sees(2200));
    CHECK(reader.commits(1000));
    reader.source().close();
  }
}

// The client does not look for the topic during this test.
TEST_CASE("Kafka: a log that is shorter than the position is consumed from its start") {
  for (const std::string reset : {"earliest", "latest"}) {
    CAPTURE(reset);
    const std::string topic = "shorter-" + reset;
    Reader reader(topic, {{"topic.metadata.refresh.interval.ms", "300000"}, {"auto.offset.reset", reset}});
    reader.publish("old", 0, 200);
    REQUIRE(reader.sees(200));
    REQUIRE(reader.commits(100));
    reader.keeps = true;
    reader.publish("held", 0, 2);
    REQUIRE(reader.poll_until([&] { return reader.kept().size() == 2; }));
    reader.admin().remove(topic);
    reader.create_again();
    int published = 40;
    reader.publish("new", 0, published);
    reader.keeps = false;
    REQUIRE(reader.poll_until([&] {
      if (reader.count(SourceEventType::lanes_revoked) == 2) return true;
      // With latest, the client begins at the end of the new log. The next message shows that this is a new log.
      if (reset == "latest") reader.publish("new", published, published + 2);
      if (reset == "latest") published += 2;
      return false;
    }));
    for (const Incoming& each : reader.kept()) CHECK_FALSE(reader.source().holds(each));
    CHECK(reader.count(SourceEventType::warning) == 2);
    CHECK(reader.sees(202U + static_cast<std::size_t>(published)));
    std::vector<const Incoming*> old;
    for (const Incoming& each : reader.kept()) old.push_back(&each);
    reader.source().acknowledge(old);
    CHECK(reader.commits(published / 2));
  }
}

TEST_CASE("Kafka: a group whose offset is behind the end begins with the oldest message") {
  const std::string topic = "behind-end";
  Admin admin(broker_address());
  admin.create(topic, 2);
  Publisher publisher(broker_address());
  for (int i = 0; i < 40; ++i) publisher.publish(topic, {.body = std::to_string(i), .partition = i % 2});
  publisher.flush();
  for (const int partition : {0, 1}) admin.commit("behind", topic, partition, 100);
  const auto source = open_kafka({.brokers = broker_address(),
                                  .group = "behind",
                                  .topics = {topic},
                                  .properties = {{"session.timeout.ms", "6000"}}});
  std::size_t got = 0;
  const auto give_up = std::chrono::steady_clock::now() + 12s;
  const auto is_done = [&] {
    return got >= 40 && admin.committed("behind", topic, 0) == 20 && admin.committed("behind", topic, 1) == 20;
  };
  while (!is_done() && std::chrono::steady_clock::now() < give_up) {
    const std::vector<Incoming> messages = source->poll(50, 50ms);
    std::vector<const Incoming*> done;
    for (const Incoming& each : messages) done.push_back(&each);
    source->acknowledge(done);
    got += messages.size();
  }
  CHECK(got == 40);
  CHECK(admin.committed("behind", topic, 0) == 20);
  CHECK(admin.committed("behind", topic, 1) == 20);
}

}  // namespace
}  // namespace txinbox::test
