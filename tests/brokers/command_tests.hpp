#pragma once

// What the command must stand on every broker. A component's tests include it and call these functions.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "brokers/broker_under_test.hpp"
#include "cli/orders.hpp"

namespace txinbox::test {

class OrdersFromBroker : public Orders {
 public:
  OrdersFromBroker(BrokerUnderTest& broker, const std::string& name)
      : broker_(broker), name_(name), url_(broker.create(name)) {}

  /// Each key twice, the second time under another message id.
  void publish(int from, int to) {
    for (int time = 0; time < 2; ++time) {
      for (int i = from; i < to; ++i) broker_.publish(name_, body(i), "account" + std::to_string(i % 20));
    }
    broker_.flush();
  }

  static std::string body(int number) {
    std::string text = line(number);
    text.pop_back();
    return text;
  }

  Command::Arguments arguments(const Command::Arguments& more = {}) const {
    Command::Arguments words = Orders::arguments({"--from", url_});
    const std::string dead = broker_.dead_letters_of(name_);
    if (!dead.empty()) words.insert(words.end(), {"--dead-letters", dead});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  /// Until nothing is left at the broker.
  Ended consume_rest(const Command::Arguments& more = {}) const {
    Command::Arguments words = arguments({"--idle-exit", broker_.idle_exit()});
    words.insert(words.end(), more.begin(), more.end());
    return test::run(words, db.url());
  }

  std::unique_ptr<Command> start(const Command::Arguments& more = {}) const {
    return std::make_unique<Command>(arguments(more), db.url());
  }

 private:
  BrokerUnderTest& broker_;
  const std::string name_;
  const std::string url_;
};

/// What an example prints, which keeps its database in a new folder.
inline std::string output_of_example(const std::string& program, const std::string& argument) {
  const std::string command = "cd \"$(mktemp -d)\" && '" + program + "' '" + argument + "'";
  FILE* pipe = ::popen(command.c_str(), "r");  // NOLINT(cert-env33-c)
  REQUIRE(pipe != nullptr);
  std::string output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  CHECK(::pclose(pipe) == 0);
  return output;
}

/// Two consumers, of which one is killed again and again.
inline void survives_kills(BrokerUnderTest& broker, const std::string& name) {
  const int times = kills(8);
  const int orders = 2000 + 150 * times;  // so that there is something to kill
  OrdersFromBroker t(broker, name);
  t.publish(0, orders);
  std::minstd_rand random(7);
  auto first = t.start({"--batch", "10"});
  auto second = t.start({"--batch", "10"});
  for (int i = 0; i < times; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100 + random() % 900));
    auto& victim = i % 2 == 0 ? first : second;
    victim->signal(SIGKILL);
    (void)victim->wait();
    if (i % 20 == 19 && TestDatabase::can_restart_server()) t.db.restart_server();
    victim = t.start({"--batch", "10"});
  }
  for (const auto* each : {&first, &second}) {
    CHECK((*each)->printed("connected"));  // so that it takes the signal
    (*each)->signal(SIGTERM);
  }
  CHECK(first->wait().status == 4);
  CHECK(second->wait().status == 4);
  const Ended rest = t.consume_rest();
  CHECK_MESSAGE(rest.status == 0, rest.err);
  MESSAGE(times << " kills: " << t.orders() << " orders of " << orders << " keys");
  CHECK(t.orders() == orders);
  CHECK(t.taken() == orders);
}

/// The broker dies and comes back while messages are consumed.
inline void survives_broker_restart(BrokerUnderTest& broker, const std::string& name) {
  const int times = std::max(1, kills(1) / 40);
  const int orders = 2000 * times;
  OrdersFromBroker t(broker, name);
  t.publish(0, orders);
  auto consumer = t.start({"--batch", "5"});
  for (int i = 0; i < times; ++i) {
    const auto before = t.orders();
    while (t.orders() == before && t.orders() < orders) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    broker.kill();
    broker.start();
  }
  // What comes after the restart is consumed by the same process.
  t.publish(orders, orders + 50);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(3);
  while (t.orders() < orders + 50 && !consumer->has_ended() && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  CHECK_FALSE(consumer->has_ended());
  consumer->signal(SIGTERM);
  const Ended ended = consumer->wait();
  CHECK_MESSAGE(ended.status == 4, ended.err);
  CHECK(t.consume_rest().status == 0);
  CHECK(t.orders() == orders + 50);
  CHECK(t.taken() == orders + 50);
}

/// The database's server dies and stays away for a while, and dies a few times more. The consumer goes on by itself.
inline void survives_database_restart(BrokerUnderTest& broker, const std::string& name) {
  if (!TestDatabase::can_restart_server()) return;  // run.sh --brokers has servers that may be killed
  constexpr int times = 5;
  constexpr int orders = 1000 * times;
  OrdersFromBroker t(broker, name);
  t.publish(0, orders);
  auto consumer = t.start({"--batch", "5"});
  for (int i = 0; i < times; ++i) {
    const auto before = t.orders();
    while (t.orders() == before) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    t.db.restart_server(i == 0 ? std::chrono::seconds(30) : std::chrono::seconds(0));
    const auto back = std::chrono::steady_clock::now();
    const auto then = t.orders();
    while (t.orders() == then && std::chrono::steady_clock::now() < back + std::chrono::minutes(2)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - back;
    MESSAGE("consumes again after " << waited.count() << " s");
    REQUIRE(t.orders() > then);
  }
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(3);
  while (t.orders() < orders && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  CHECK_FALSE(consumer->has_ended());
  consumer->signal(SIGTERM);
  CHECK(consumer->wait().status == 4);
  const Ended rest = t.consume_rest();
  CHECK_MESSAGE(rest.status == 0, rest.err);
  CHECK(t.orders() == orders);
  CHECK(t.taken() == orders);
}

/// Messages that cannot be consumed, between good ones.
inline void dead_letters_do_not_stop_the_others(BrokerUnderTest& broker, const std::string& name) {
  OrdersFromBroker t(broker, name);
  broker.publish(name, "no JSON", "k");
  broker.publish(name, R"({"sku":"a","qty":1})", "k");
  broker.publish(name, R"({"no":")" + std::string(256, 'x') + R"(","sku":"a","qty":1})", "k");
  broker.publish(name, R"({"no":"o9","sku":"a"})", "k");
  broker.publish(name, R"({"no":"big","sku":"a","qty":1,"more":")" + std::string(900'000, 'x') + R"("})", "k");
  t.publish(0, 20);
  const Ended ended = t.consume_rest();
  CHECK_MESSAGE(ended.status == 1, ended.err);
  CHECK_MESSAGE(counts(ended) == "consumed 21, already consumed 20, dead letters 4, retries 0", ended.err);
  CHECK(t.orders() == 21);
  CHECK(t.consume_rest().status == 0);  // nothing is left
}

}  // namespace txinbox::test
