#pragma once

#include <chrono>
#include <cstddef>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <txinbox/rocketmq.hpp>

#include "brokers/broker_under_test.hpp"

namespace txinbox::test {

/// A producer and other functions of the broker for the tests of RocketMQ.
class RocketMqBroker : public BrokerUnderTest {
 public:
  std::string create(const std::string& name) override { return create(name, false); }

  std::string create(const std::string& name, bool fifo) {
    control("topic", name + (fifo ? " FIFO" : " NORMAL"));
    control("group", name + (fifo ? " true" : " false"));
    fifo_ = fifo;
    publisher_ = nullptr;
    return "rocketmq://" + broker_address() + "/" + name + "?group=" + name + "&invisible=10";
  }

  void publish(const std::string& name, const std::string& body, const std::string& key) override {
    add({.topic = name, .key = key, .payload = body, .id = "id-" + key});
  }

  void add(const OutgoingMessage& message) {
    // Two messages with the same key must not be in one call, or else they have no order.
    if (waiting_.size() == 500 || (fifo_ && !keys_.insert(message.key).second)) flush();
    keys_.insert(message.key);
    waiting_.push_back(message);
  }

  /// Publishes the waiting messages. Repeats this, because a new topic is not known everywhere for some seconds.
  void flush() override {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!waiting_.empty()) {
      const std::vector<PublishResult> results = publish(waiting_);
      std::vector<OutgoingMessage> rest;
      for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i].status == PublishStatus::confirmed) continue;
        if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error(results[i].error);
        rest.push_back(waiting_[i]);
      }
      waiting_ = std::move(rest);
      if (!waiting_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    keys_.clear();
  }

  std::vector<PublishResult> publish(const std::vector<OutgoingMessage>& messages) {
    if (!publisher_) publisher_ = rocketmq_publisher(publisher_options());
    return publisher_(messages);
  }

  RocketMqPublisherOptions publisher_options() const {
    RocketMqPublisherOptions options = rocketmq_publisher_options_from_url("rocketmq://" + broker_address());
    options.fifo = fifo_;
    return options;
  }

  /// Empty, because the broker has a dead-letter queue for each group.
  std::string dead_letters_of(const std::string& /*name*/) override { return {}; }

  /// Its dead letters have no headers.
  std::vector<std::string> redrive_from(const std::string& name) override {
    const std::string group = name + "-redrive";
    control("group", group + " false");
    return {"--from",     "rocketmq://" + broker_address() + "/%25DLQ%25" + name + "?group=" + group + "&invisible=10",
            "--to",       name,
            "--consumer", "orders",
            "--key",      "/no"};
  }

  /// The number of messages that a topic has got since it was created.
  static int count(const std::string& topic) {
    const std::string file = variable("TXINBOX_BROKER_FOLDER") + "/count";
    control("count", "'" + topic + "' > '" + file + "'");
    int count = -1;
    std::ifstream(file) >> count;
    return count;
  }

  std::string idle_exit() const override { return "25s"; }

  static RocketMqOptions options(const std::string& name) {
    return rocketmq_options_from_url("rocketmq://" + broker_address() + "/" + name + "?group=" + name +
                                     "&invisible=10");
  }

 private:
  bool fifo_ = false;
  Publisher publisher_;
  std::vector<OutgoingMessage> waiting_;
  std::set<std::string> keys_;
};

}  // namespace txinbox::test
