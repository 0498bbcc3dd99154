#pragma once

// A test of the command that must pass on each broker that distributes the messages of a queue among its consumers. The
// test of Kafka is components/kafka/tests/rebalance_test.cpp: it looks at each partition.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "brokers/background_producer.hpp"
#include "brokers/command_tests.hpp"
#include "support/counts.hpp"

namespace txinbox::test {

/// One consumer stays. Another one joins every three seconds, and leaves when the next one joins. In the steps
/// …-kills-…, this lasts for two minutes. Fewer than 1 % of the messages arrive again, and the orders never stand still
/// for 10 s.
inline void members_join_and_leave(BrokerUnderTest& broker, const std::string& name) {
  using Clock = std::chrono::steady_clock;
  const int joins = std::getenv("TXINBOX_BROKER_KILLS") == nullptr ? 4 : 40;
  OrdersFromBroker t(broker, name);
  BackgroundProducer producer([&](int from, int to) { t.publish_once(from, to); }, 100);
  const Command::Arguments batch = {"--batch", "10"};
  const auto stays = t.start(batch);
  CHECK(stays->printed("connected"));
  long long duplicates = 0;
  const auto leave = [&](Command& member) {
    CHECK(member.printed("connected"));  // from now on it handles the signal
    member.signal(SIGTERM);
    const Ended ended = member.wait();
    CHECK_MESSAGE(ended.status == 4, ended.err);
    const std::string before = ", already consumed ";
    const auto at = ended.last_line().find(before);
    REQUIRE_MESSAGE(at != std::string::npos, ended.last_line());
    duplicates += std::stoll(ended.last_line().substr(at + before.size()));
  };
  Clock::duration longest{};
  auto last = Clock::now();
  long long orders = 0;
  const auto look = [&] {
    const long long now = t.orders();
    producer.consumed(now);
    if (now == orders && orders < producer.published()) {
      longest = std::max(longest, Clock::now() - last);
    } else {
      last = Clock::now();
    }
    orders = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  };
  for (int i = 0; i < joins; ++i) {
    const auto guest = t.start(batch);
    for (const auto until = Clock::now() + std::chrono::seconds(3); Clock::now() < until;) look();
    leave(*guest);
  }
  const int published = producer.stop();
  for (const auto give_up = Clock::now() + std::chrono::minutes(2); orders < published && Clock::now() < give_up;)
    look();
  leave(*stays);
  count(joins, "members joined and left");
  count(published, "messages");
  count(duplicates, "duplicates");
  note("the longest standstill: " + std::to_string(std::chrono::duration<double>(longest).count()) + " s");
  CHECK(longest <= std::chrono::seconds(10));
  CHECK(t.orders() == published);
  CHECK(t.taken() == published);
  CHECK(duplicates * 100 < published);
}

}  // namespace txinbox::test
