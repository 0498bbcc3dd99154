// The rule of sources for RabbitMQ, with a real broker.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/rabbitmq.hpp>

#include "rabbitmq_broker.hpp"
#include "support/silent_relay.hpp"
#include "support/source_rule.hpp"
#include "support/source_rule_run.hpp"

namespace txinbox::test {
namespace {

class Queue {
 public:
  Queue() {
    static int number = 0;
    name_ = "source-rule-" + std::to_string(++number);
    (void)broker_.create(name_);
  }
  ~Queue() { take_letters_again(); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  std::unique_ptr<Source> open() {
    RabbitMqOptions options = RabbitMqBroker::options(name_);
    const std::string address = relay_.address();
    options.server.port = static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1)));
    return open_rabbitmq(options);
  }

  void publish(const SourceMessage& message) {
    std::vector<amqp_table_entry_t> entries(message.headers.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const auto& [name, value] = message.headers[i];
      entries[i].key = bytes_of(name);
      entries[i].value.kind = AMQP_FIELD_KIND_UTF8;
      entries[i].value.value.bytes = bytes_of(value);
    }
    amqp_basic_properties_t properties{};
    properties._flags = AMQP_BASIC_HEADERS_FLAG | (message.id.empty() ? 0U : AMQP_BASIC_MESSAGE_ID_FLAG);
    properties.headers = {.num_entries = static_cast<int>(entries.size()), .entries = entries.data()};
    properties.message_id = bytes_of(message.id);
    broker_.publish(name_, message.body, &properties);
    broker_.flush();
  }

  std::vector<SourceMessage> take_letters(std::size_t count) {
    RabbitMqOptions options = RabbitMqBroker::options(broker_.dead_letters_of(name_));
    options.dead_letters.clear();
    return take_messages(*open_rabbitmq(options), count, "message-id");
  }

  static void lose_messages(Source& /*source*/) { RabbitMqBroker::close_connections(); }

  static constexpr auto longest_call = std::chrono::seconds(5);
  static constexpr auto longest_stop = std::chrono::seconds(5);
  static std::vector<Silence> silences() {
    return {Silence::at_start, Silence::with_messages, Silence::within_message};
  }
  void fall_silent() { relay_.fall_silent_after(0); }
  void fall_silent_in_message() { relay_.fall_silent_after(1000); }

  static std::vector<LetterRefusal> refusals() {
    return {LetterRefusal::forbidden, LetterRefusal::missing, LetterRefusal::too_large};
  }
  void refuse_letters(LetterRefusal why) {
    why_ = why;
    if (why == LetterRefusal::forbidden) RabbitMqBroker::allow_writes("^$");
    if (why == LetterRefusal::missing) broker_.remove(broker_.dead_letters_of(name_));
    if (why == LetterRefusal::too_large) RabbitMqBroker::set_max_message_size(1000);
  }
  void take_letters_again() {
    if (why_ == LetterRefusal::forbidden) RabbitMqBroker::allow_writes(".*");
    if (why_ == LetterRefusal::missing) (void)broker_.create(name_);
    if (why_ == LetterRefusal::too_large) RabbitMqBroker::set_max_message_size(2'000'000);
    why_.reset();
  }

 private:
  static amqp_bytes_t bytes_of(const std::string& text) { return {text.size(), const_cast<char*>(text.data())}; }

  RabbitMqBroker broker_;
  std::string name_;
  std::optional<LetterRefusal> why_;
  SilentRelay relay_{broker_address()};
};

TEST_CASE_TEMPLATE_INVOKE(source_delivers_again, Queue);
TEST_CASE_TEMPLATE_INVOKE(source_outlives_refused_letters, Queue);
TEST_CASE_TEMPLATE_INVOKE(source_wakes, Queue);
TEST_CASE_TEMPLATE_INVOKE(source_writes_letters, Queue);
TEST_CASE_TEMPLATE_INVOKE(source_takes_any_id, Queue);
TEST_CASE_TEMPLATE_INVOKE(source_forgets_the_lost, Queue);
TEST_CASE_TEMPLATE_INVOKE(source_outlives_silence, Queue);
TEST_CASE_TEMPLATE_INVOKE(source_lets_run_stop, Queue);

}  // namespace
}  // namespace txinbox::test
