// The rule of publishers for RocketMQ, with a proxy in this process.

#include <chrono>
#include <cstddef>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <txinbox/rocketmq.hpp>

#include "fake_proxy.hpp"
#include "support/publisher_rule.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

class RocketMqProxy {
 public:
  RocketMqProxy() { recover(); }

  Publisher publisher() const {
    return rocketmq_publisher({.server = {.host = "127.0.0.1", .port = proxy_.port()}, .timeout = 3s});
  }
  static Publisher publisher_to_nowhere() {
    return rocketmq_publisher({.server = {.host = "127.0.0.1", .port = 1}, .timeout = 3s});
  }
  static OutgoingMessage message(const std::string& id) { return {.topic = "stock", .payload = "{}", .id = id}; }
  static OutgoingMessage refused(const std::string& id) { return {.topic = "stock", .payload = "refused", .id = id}; }

  std::set<std::string> held() const { return proxy_.confirmed(); }
  void fall_silent_after(std::size_t answers) { proxy_.answer_messages(answers, FakeProxy::Rest::is_silent); }
  void close_after(std::size_t answers) { proxy_.answer_messages(answers, FakeProxy::Rest::is_closed); }
  void recover() { proxy_.answer_messages(FakeProxy::any_number, FakeProxy::Rest::is_silent); }

 private:
  FakeProxy proxy_;
};

TEST_CASE_TEMPLATE_INVOKE(publisher_confirms, RocketMqProxy);
TEST_CASE_TEMPLATE_INVOKE(publisher_blames_the_refused, RocketMqProxy);
TEST_CASE_TEMPLATE_INVOKE(publisher_outlives_close, RocketMqProxy);
TEST_CASE_TEMPLATE_INVOKE(publisher_outlives_silence, RocketMqProxy);
TEST_CASE_TEMPLATE_INVOKE(publisher_blames_nobody_alone, RocketMqProxy);

}  // namespace
}  // namespace txinbox::test
