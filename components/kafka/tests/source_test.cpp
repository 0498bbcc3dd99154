// Calls a Kafka source as `run` calls it, and tests the effect of rebalances and pauses on the messages.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/error.hpp>

#include "kafka_broker.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// A member of the group. It records the offsets that it gets, for each partition.
class Polled {
 public:
  explicit Polled(const KafkaOptions& options) : source_(open_kafka(options)) {
    source_->on_event([this](const SourceEvent& event) {
      ++events_[event.type];
      if (event.type == SourceEventType::lanes_revoked)
        offsets_.clear();  // after the next assignment, they may begin at another offset
    });
  }

  /// Returns the messages of a poll. Fails if a message of a partition is missing between two others.
  std::vector<Incoming> poll(std::size_t max, std::chrono::milliseconds wait = 20ms) {
    std::vector<Incoming> got = source_->poll(max, wait);
    CHECK(got.size() <= max);
    for (const Incoming& in : got) {
      CHECK(source_->holds(in));
      const auto at = in.id.find('@');
      const long long offset = std::stoll(std::string(in.id.substr(at + 1)));
      const auto before = offsets_.find(*in.lane);
      if (before != offsets_.end()) CHECK_MESSAGE(offset == before->second + 1, std::string(in.id));
      offsets_[*in.lane] = offset;
    }
    return got;
  }

  void acknowledge(const std::vector<Incoming>& done) {
    std::vector<const Incoming*> pointers;
    for (const Incoming& in : done) pointers.push_back(&in);
    source_->acknowledge(pointers);
  }

  Source& source() { return *source_; }
  int count(SourceEventType type) const { return events_.contains(type) ? events_.at(type) : 0; }
  std::size_t lanes() { return source_->status().lanes; }

 private:
  std::map<SourceEventType, int> events_;
  std::map<std::uint64_t, long long> offsets_;
  std::unique_ptr<Source> source_;  // last member: its destructor also reports events
};

/// Whether the condition becomes true within two minutes.
bool within_minutes(const std::function<bool()>& condition) {
  const auto give_up = std::chrono::steady_clock::now() + 2min;
  while (std::chrono::steady_clock::now() < give_up) {
    if (condition()) return true;
  }
  return false;
}

void publish_numbers(KafkaBroker& broker, const std::string& topic, int count) {
  (void)broker.create(topic);
  for (int i = 0; i < count; ++i) {
    broker.publisher().publish(topic, {.body = "m" + std::to_string(i), .partition = i % 4});
  }
  broker.flush();
}

/// With these options, each rebalance revokes all partitions. The next owner of a partition begins at the acknowledged
/// offset.
KafkaOptions eager(KafkaOptions options) {
  options.properties["partition.assignment.strategy"] = "range";
  return options;
}

/// A source without room must stay in the group, and must skip no message when it has room again.
void stands_still_and_goes_on(const std::string& topic, const std::string& body, std::size_t messages) {
  KafkaBroker broker;
  (void)broker.create(topic);
  for (std::size_t i = 0; i < messages; ++i) {
    broker.publisher().publish(topic, {.body = body, .partition = static_cast<int>(i % 4)});
  }
  broker.flush();
  KafkaOptions options = eager(broker.options(topic));
  options.properties["max.poll.interval.ms"] = "2000";
  Polled first(options);
  REQUIRE(within_minutes([&] { return !first.poll(10).empty(); }));
  const auto stood_still = std::chrono::steady_clock::now() + 6s;  // three times max.poll.interval.ms
  while (std::chrono::steady_clock::now() < stood_still) CHECK(first.poll(0, 100ms).empty());
  CHECK(first.count(SourceEventType::lanes_revoked) == 0);

  // Another member gets partitions, although the first one has fetched many messages and returns none.
  Polled second(options);
  REQUIRE(within_minutes([&] {
    (void)first.poll(0, 20ms);
    (void)second.poll(10);
    return second.lanes() == 2 && first.lanes() == 2;
  }));
  second.source().close();
  std::size_t after = 0;
  REQUIRE(within_minutes([&] {
    const auto got = first.poll(50);
    if (first.lanes() == 4) after += got.size();
    return after == messages;  // all messages come again, because none was acknowledged
  }));
}

TEST_CASE("Kafka: a source without room stays in the group, and skips nothing") {
  stands_still_and_goes_on("still", "small", 2000);
}

TEST_CASE("Kafka: a source without room pauses its partitions if the messages are large, and skips nothing") {
  stands_still_and_goes_on("still-large", std::string(900'000, 'x'), 60);
}

TEST_CASE("Kafka: a paused lane delivers no messages until it is resumed or assigned again") {
  KafkaBroker broker;
  publish_numbers(broker, "paused", 400);
  const KafkaOptions options = eager(broker.options("paused"));
  Polled first(options);
  std::optional<std::uint64_t> lane;
  REQUIRE(within_minutes([&] {
    for (const Incoming& in : first.poll(1)) lane = in.lane;
    return lane.has_value();
  }));
  first.source().pause(*lane);
  std::map<std::uint64_t, int> by_lane;
  REQUIRE(within_minutes([&] {
    for (const Incoming& in : first.poll(10)) ++by_lane[*in.lane];
    return by_lane.size() == 3 && std::ranges::all_of(by_lane, [](const auto& each) { return each.second >= 99; });
  }));
  CHECK_FALSE(by_lane.contains(*lane));

  SUBCASE("resumed") {
    first.source().resume(*lane);
    int came = 0;
    REQUIRE(within_minutes([&] {
      for (const Incoming& in : first.poll(10)) came += in.lane == lane ? 1 : 0;
      return came == 99;
    }));
  }
  SUBCASE("revoked and assigned again") {
    int came = 0;
    bool was_away = false;
    {
      Polled second(options);
      REQUIRE(within_minutes([&] {
        (void)first.poll(0);
        (void)second.poll(1);
        was_away = was_away || first.count(SourceEventType::lanes_revoked) > 0;
        return was_away && second.lanes() > 0;
      }));
    }
    REQUIRE(within_minutes([&] {
      for (const Incoming& in : first.poll(10)) came += in.lane == lane ? 1 : 0;
      return came == 100;  // the partition begins at its first message, because none was acknowledged
    }));
  }
}

TEST_CASE("Kafka: a message of a revoked partition is not held, and its acknowledgement is ignored") {
  KafkaBroker broker;
  publish_numbers(broker, "stale", 40);
  Polled first(broker.options("stale"));
  std::vector<Incoming> old;
  REQUIRE(within_minutes([&] {
    for (Incoming& in : first.poll(40)) old.push_back(std::move(in));
    return old.size() == 40;
  }));
  std::size_t came_again = 0;
  {
    Polled second(broker.options("stale"));
    REQUIRE(within_minutes([&] {
      (void)first.poll(0);
      came_again += second.poll(40).size();
      return came_again == 20;
    }));
    std::size_t held = 0;
    for (const Incoming& in : old) held += first.source().holds(in) ? 1U : 0U;
    CHECK(held <= 20);
    first.acknowledge(old);  // some of these messages belong to revoked partitions
    first.source().close();
  }
  // No member has acknowledged the messages that no member has consumed.
  Polled third(broker.options("stale"));
  std::size_t rest = 0;
  REQUIRE(within_minutes([&] {
    rest += third.poll(40).size();
    return rest >= 20;
  }));
}

TEST_CASE(
    "Kafka: if two consumers have the same group.instance.id, the first ends with an error that names the reason") {
  KafkaBroker broker;
  publish_numbers(broker, "fenced", 4);
  KafkaOptions options = broker.options("fenced");
  options.properties["group.instance.id"] = "one";
  Polled first(options);
  REQUIRE(within_minutes([&] { return !first.poll(10).empty(); }));
  Polled second(options);
  std::string thrown = "nothing";
  REQUIRE(within_minutes([&] {
    thrown = thrown_by([&] {
      (void)second.poll(1);
      (void)first.poll(1);
    });
    return thrown != "nothing";
  }));
  CHECK(thrown == "broker_refused");
}

TEST_CASE("Kafka: after a restart, a member with a group.instance.id gets its partitions back without a rebalance") {
  KafkaBroker broker;
  publish_numbers(broker, "static", 400);
  KafkaOptions options = broker.options("static");
  options.properties["session.timeout.ms"] = "30000";
  options.properties["max.poll.interval.ms"] = "60000";
  Polled stays(options);
  options.properties["group.instance.id"] = "restarts";
  auto restarts = std::make_unique<Polled>(options);
  const auto have_two_each = [&] {
    (void)stays.poll(1);
    (void)restarts->poll(1);
    return stays.lanes() == 2 && restarts->lanes() == 2;
  };
  REQUIRE(within_minutes(have_two_each));
  const int revoked = stays.count(SourceEventType::lanes_revoked);
  restarts = std::make_unique<Polled>(options);
  REQUIRE(within_minutes(have_two_each));
  CHECK(stays.count(SourceEventType::lanes_revoked) == revoked);
}

}  // namespace
}  // namespace txinbox::test
