// The rule of sources for RocketMQ, with a real broker, and with a proxy in this process that falls silent.

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/rocketmq.hpp>

#include "fake_proxy.hpp"
#include "rocketmq_broker.hpp"
#include "support/source_rule.hpp"
#include "support/source_rule_run.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// A topic of a real broker, without an order.
class Topic {
 public:
  Topic() {
    static int number = 0;
    name_ = "source-rule-" + std::to_string(++number);
    (void)broker_.create(name_);
  }

  std::unique_ptr<Source> open() const { return open_rocketmq(RocketMqBroker::options(name_)); }

  void publish(const SourceMessage& message) {
    broker_.publish(name_, message.body, message.key.value_or(""));
    broker_.flush();
  }

  /// The source does not prolong the invisible time, because it is not polled.
  static void lose_messages(Source& /*source*/) { std::this_thread::sleep_for(11s); }

 private:
  RocketMqBroker broker_;
  std::string name_;
};

TEST_CASE_TEMPLATE_INVOKE(source_delivers_again, Topic);
TEST_CASE_TEMPLATE_INVOKE(source_wakes, Topic);
TEST_CASE_TEMPLATE_INVOKE(source_forgets_the_lost, Topic);

class Proxy {
 public:
  Proxy() { proxy_.answer_settings(); }

  std::unique_ptr<Source> open() {
    return open_rocketmq({.server = {.host = "127.0.0.1", .port = proxy_.port()}, .topic = "orders", .group = "g"});
  }

  void publish(const SourceMessage& /*message*/) {
    handles_.push_back("handle-" + std::to_string(handles_.size()));
    proxy_.deliver(handles_);
  }

  static constexpr auto longest_call = 5s;
  static constexpr auto longest_stop = 5s;
  static std::vector<Silence> silences() {
    return {Silence::at_start, Silence::with_messages, Silence::within_message};
  }
  void fall_silent() { proxy_.fall_silent(); }
  void fall_silent_in_message() {
    handles_.clear();
    proxy_.fall_silent_in_answer();
  }

 private:
  std::vector<std::string> handles_;
  FakeProxy proxy_;
};

TEST_CASE_TEMPLATE_INVOKE(source_outlives_silence, Proxy);
TEST_CASE_TEMPLATE_INVOKE(source_lets_run_stop, Proxy);

TEST_CASE("the rule of sources: a dead letter that is refused stops nothing else, and is taken later" *
          doctest::skip(true)) {
  // The broker refuses no dead letter of a group that exists. silent_proxy_test.cpp has a proxy that does.
}

TEST_CASE("the rule of sources: a dead letter is the message with one set of headers, the newest" *
          doctest::skip(true)) {
  // The broker moves the message itself, and adds no header.
}

TEST_CASE("the rule of sources: an id of any bytes is delivered, and is in the dead letter" * doctest::skip(true)) {
  // An id is a text of protobuf, which is UTF-8.
}

}  // namespace
}  // namespace txinbox::test
