// The rule of publishers for RabbitMQ, with a real broker behind a relay.

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/rabbitmq.hpp>

#include "rabbitmq_broker.hpp"
#include "support/publisher_rule.hpp"
#include "support/relay.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// A relay that can pass only the confirmations of the first messages of a connection.
class ConfirmationRelay {
 public:
  std::string address() const { return relay_.url().substr(std::string_view("amqp://").size()); }

  void misbehave_after(std::size_t answers, bool closes) {
    const std::lock_guard lock(mutex_);
    answers_ = answers;
    closes_ = closes;
    is_over_ = answers == 0;
    is_limited_ = true;
  }
  void recover() {
    const std::lock_guard lock(mutex_);
    is_limited_ = false;
  }

 private:
  /// Returns which of these bytes of the broker pass. `confirmations`: what the broker has sent since the first
  /// message.
  std::string pass(std::string_view bytes, std::string* confirmations) {
    const std::lock_guard lock(mutex_);
    if (!is_limited_) return std::string(bytes);
    if (is_over_) return {};
    if (confirmations == nullptr) return std::string(bytes);
    *confirmations += bytes;
    // The frame of basic.ack: a head of 11 bytes, the number of the message in 8 bytes, whether it is also for the
    // messages before, and the end of the frame. The numbers of this test are in the last of the 8 bytes.
    for (std::size_t at = 0; at + 21 <= confirmations->size(); at += 21) {
      std::string frame = confirmations->substr(at, 21);
      if (static_cast<unsigned char>(frame[18]) < answers_) continue;
      is_over_ = true;
      frame[18] = static_cast<char>(answers_);
      frame[19] = 1;
      return frame;
    }
    return {};
  }
  bool must_close() {
    const std::lock_guard lock(mutex_);
    return is_limited_ && closes_ && is_over_;
  }

  void serve(int client, int server) {
    constexpr std::string_view basic_publish("\0\x3c\0\x28", 4);
    bool has_published = false;
    std::string confirmations;
    std::array<pollfd, 2> ends{pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}};
    std::vector<char> bytes(100'000);
    while (!relay_.ending() && !must_close()) {
      if (::poll(ends.data(), ends.size(), 20) <= 0) continue;
      const bool from_client = ends[0].revents != 0;
      const ssize_t got = ::recv(from_client ? client : server, bytes.data(), bytes.size(), 0);
      if (got <= 0) return;
      const std::string_view text(bytes.data(), static_cast<std::size_t>(got));
      if (from_client) {
        if (text.find(basic_publish) != std::string_view::npos) has_published = true;
        send_all(server, text.data(), text.size());
      } else {
        const std::string passed = pass(text, has_published ? &confirmations : nullptr);
        send_all(client, passed.data(), passed.size());
      }
    }
  }

  std::mutex mutex_;
  std::size_t answers_ = 0;  ///< How many messages are confirmed if the answers are limited.
  bool is_limited_ = false;
  bool closes_ = false;   ///< Whether it closes the connection after the answers.
  bool is_over_ = false;  ///< The answers have passed.
  Relay relay_{"amqp://" + broker_address() + "/",
               [this](int client, int server) { serve(client, server); }};  ///< The last member: its threads use them.
};

class QueueOfRule {
 public:
  QueueOfRule() { (void)broker_.create(queue); }
  ~QueueOfRule() { (void)broker_.take_ids(queue); }
  QueueOfRule(const QueueOfRule&) = delete;
  QueueOfRule& operator=(const QueueOfRule&) = delete;

  Publisher publisher() const { return publisher_to("amqp://guest@" + relay_.address() + "%2F"); }
  static Publisher publisher_to_nowhere() { return publisher_to("amqp://guest@127.0.0.1:1/%2F"); }
  static OutgoingMessage message(const std::string& id) { return {.topic = queue, .payload = "{}", .id = id}; }
  /// tests/brokers/rabbitmq.sh sets the limit of a message's size.
  static OutgoingMessage refused(const std::string& id) {
    return {.topic = queue, .payload = std::string(3UL * 1024 * 1024, 'x'), .id = id};
  }

  std::set<std::string> held() {
    held_.merge(broker_.take_ids(queue));
    return held_;
  }
  void fall_silent_after(std::size_t answers) { relay_.misbehave_after(answers, false); }
  void close_after(std::size_t answers) { relay_.misbehave_after(answers, true); }
  void recover() { relay_.recover(); }

 private:
  static constexpr const char* queue = "rule";

  static Publisher publisher_to(const std::string& url) {
    RabbitMqPublisherOptions options = rabbitmq_publisher_options_from_url(url);
    options.timeout = 3s;
    return rabbitmq_publisher(options);
  }

  RabbitMqBroker broker_;
  std::set<std::string> held_;
  ConfirmationRelay relay_;
};

TEST_CASE_TEMPLATE_INVOKE(publisher_confirms, QueueOfRule);
TEST_CASE_TEMPLATE_INVOKE(publisher_blames_the_refused, QueueOfRule);
TEST_CASE_TEMPLATE_INVOKE(publisher_outlives_close, QueueOfRule);
TEST_CASE_TEMPLATE_INVOKE(publisher_outlives_silence, QueueOfRule);
TEST_CASE_TEMPLATE_INVOKE(publisher_blames_nobody_alone, QueueOfRule);

}  // namespace
}  // namespace txinbox::test
