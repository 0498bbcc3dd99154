#pragma once

#include <memory>
#include <string>

#include "brokers/broker_under_test.hpp"
#include "cli/orders.hpp"

namespace txinbox::test {

/// Orders that the command consumes from a queue or topic of its own.
class OrdersFromBroker : public Orders {
 public:
  OrdersFromBroker(BrokerUnderTest& broker, const std::string& name)
      : broker_(broker), name_(name), url_(broker.create(name)) {}

  /// Publishes each key twice, the second time with another message id.
  void publish(int from, int to) {
    for (int time = 0; time < 2; ++time) add(from, to);
    broker_.flush();
  }

  void publish_once(int from, int to) {
    add(from, to);
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

  /// Consumes until the broker has no more messages.
  Ended consume_rest(const Command::Arguments& more = {}) const {
    Command::Arguments words = arguments({"--idle-exit", broker_.idle_exit()});
    words.insert(words.end(), more.begin(), more.end());
    return test::run(words, db.url());
  }

  std::unique_ptr<Command> start(const Command::Arguments& more = {}) const {
    return std::make_unique<Command>(arguments(more), db.url());
  }

 private:
  void add(int from, int to) {
    for (int i = from; i < to; ++i) broker_.publish(name_, body(i), "account" + std::to_string(i % 20));
  }

  BrokerUnderTest& broker_;
  const std::string name_;
  const std::string url_;
};

}  // namespace txinbox::test
