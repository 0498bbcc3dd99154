// A RabbitMQ broker that does not answer: its processes are stopped, and the connections stay open.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/rabbitmq.hpp>
#include <txinbox/txinbox.hpp>

#include "rabbitmq_broker.hpp"
#include "support/effects.hpp"
#include "support/relay.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Stops the broker's processes while this object exists.
class Frozen {
 public:
  Frozen() { RabbitMqBroker::freeze(true); }
  ~Frozen() { RabbitMqBroker::freeze(false); }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;
};

TEST_CASE("RabbitMQ: if a dead letter is not confirmed in time, the connection stays open") {
  RabbitMqBroker broker;
  (void)broker.create_quorum("unconfirmed", 2);
  for (const char* body : {"", "m1", "m2"}) broker.publish("unconfirmed", body, nullptr);
  broker.flush();
  EffectDatabase db;
  Pool pool = db.pool();
  RabbitMqOptions source_options = RabbitMqBroker::options("unconfirmed");
  source_options.dead_letter_timeout = 100ms;
  const auto source = open_rabbitmq(source_options);
  std::optional<Frozen> frozen;
  int refused = 0;
  int disconnected = 0;
  RunOptions options{.backoff = 5ms, .max_backoff = 20ms, .idle_exit = 1s};
  const auto listener = on_event([&](const RunEvent& event) {
    if (event.type == RunEventType::dead_letter_failed && ++refused == 5) frozen.reset();
    if (event.type == RunEventType::source && event.source_event->type == SourceEventType::disconnected) ++disconnected;
  });
  TxConsumer consumer(pool, "svc", {.listeners = {listener}});
  const RunSummary summary = run(
      *source, consumer,
      [&](const Incoming& in) {
        if (in.body.empty()) frozen.emplace();
        return Message{.business_key = std::string(in.body)};
      },
      add_effect, options);
  CHECK(refused >= 5);
  CHECK(disconnected == 0);
  CHECK(summary.dropped == 0);
  CHECK(summary.dead_letters == 1);
  CHECK(db.effects() == 2);
  CHECK(broker.ready("unconfirmed.dead") >= 1);
  CHECK(broker.ready("unconfirmed") == 0);
}

TEST_CASE("RabbitMQ: a call of the publisher ends in time, also if the broker does not answer") {
  RabbitMqBroker broker;
  (void)broker.create("silent");
  RabbitMqPublisherOptions options =
      rabbitmq_publisher_options_from_url("amqp://guest@" + broker_address() + "/%2F/amq.direct");
  options.timeout = 2s;
  const Publisher publish = rabbitmq_publisher(options);
  const std::vector<OutgoingMessage> small{{.topic = "silent", .payload = "body", .id = "1"}};
  std::vector<OutgoingMessage> large;  // more than the buffers of the sockets hold
  for (int i = 0; i < 40; ++i) {
    large.push_back({.topic = "silent", .payload = std::string(1'000'000, 'x'), .id = std::to_string(i)});
  }
  const Publisher other = rabbitmq_publisher(options);
  (void)publish(small);
  (void)other(small);
  const Frozen frozen;
  const auto fails_in_time = [](const Publisher& by, const std::vector<OutgoingMessage>& messages) {
    const auto start = Clock::now();
    CHECK_THROWS_AS(by(messages), std::runtime_error);
    CHECK(Clock::now() - start < 4s);
  };
  fails_in_time(publish, small);  // on the existing connection
  fails_in_time(publish, small);  // on a new connection
  fails_in_time(other, large);
}

/// Forwards all data in both directions until the client publishes its first message. After that, it drops all data
/// from the broker.
void swallow_confirmations(int client, int server) {
  constexpr std::string_view basic_publish("\0\x3c\0\x28", 4);
  bool has_published = false;
  std::array<pollfd, 2> ready{pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}};
  std::vector<char> bytes(100'000);
  while (::poll(ready.data(), ready.size(), 60'000) > 0) {
    for (std::size_t i = 0; i < ready.size(); ++i) {
      if (ready.at(i).revents == 0) continue;
      const ssize_t got = ::recv(ready.at(i).fd, bytes.data(), bytes.size(), 0);
      if (got <= 0) return;
      const std::string_view text(bytes.data(), static_cast<std::size_t>(got));
      const bool is_of_client = i == 0;
      if (is_of_client && text.find(basic_publish) != std::string_view::npos) has_published = true;
      if (is_of_client || !has_published) send_all(ready.at(1 - i).fd, text.data(), text.size());
    }
  }
}

TEST_CASE("RabbitMQ: a message that is not confirmed fails if the broker answers other requests") {
  RabbitMqBroker broker;
  (void)broker.create("never-confirmed");
  const Relay relay("amqp://" + broker_address() + "/", swallow_confirmations);
  RabbitMqPublisherOptions options =
      rabbitmq_publisher_options_from_url("amqp://guest@" + relay.url().substr(std::string("amqp://").size()) + "%2F");
  options.timeout = 1s;
  const Publisher publish = rabbitmq_publisher(options);
  const std::vector<OutgoingMessage> one{{.topic = "never-confirmed", .payload = "body", .id = "1"}};
  for (int i = 0; i < 2; ++i) {
    const auto results = publish(one);
    REQUIRE(results.size() == 1);
    CHECK(results[0].status == PublishStatus::failed);
  }
}

TEST_CASE("RabbitMQ: no message fails while the broker blocks publishers") {
  RabbitMqBroker broker;
  (void)broker.create("blocked");
  RabbitMqPublisherOptions options = rabbitmq_publisher_options_from_url("amqp://guest@" + broker_address() + "/%2F");
  options.timeout = 1s;
  const Publisher publish = rabbitmq_publisher(options);
  const std::vector<OutgoingMessage> one{{.topic = "blocked", .payload = "body", .id = "1"}};
  RabbitMqBroker::set_memory_limit("1MB");
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(publish(one), std::runtime_error);
  RabbitMqBroker::set_memory_limit("512MB");
}

TEST_CASE("RabbitMQ: an event names consumer_timeout when the broker ends a channel because of it") {
  RabbitMqBroker broker;
  (void)broker.create("timed-out");
  broker.publish("timed-out", "m", nullptr);
  broker.flush();
  RabbitMqBroker::set_consumer_timeout(1s, 500ms);
  EffectDatabase db;
  Pool pool = db.pool();
  const auto source = open_rabbitmq(RabbitMqBroker::options("timed-out"));
  const auto give_up = Clock::now() + 30s;
  std::vector<std::string> reasons;
  std::atomic<bool> was_told = false;
  RunOptions options{.backoff = 5ms, .max_backoff = 200ms, .idle_exit = 1s};
  const auto listener = on_event([&](const RunEvent& event) {
    if (event.type == RunEventType::source && event.source_event->type == SourceEventType::disconnected) {
      reasons.push_back(event.source_event->text);
      was_told = true;
    }
  });
  TxConsumer consumer(pool, "svc", {.listeners = {listener}});
  const RunSummary summary = run(
      *source, consumer, [](const Incoming& in) { return Message{.business_key = std::string(in.body)}; },
      [&](soci::session& sql, Delivery& delivery) {
        add_effect(sql, delivery);
        if (!was_told && Clock::now() < give_up) throw std::runtime_error("not yet");
      },
      options);
  RabbitMqBroker::set_consumer_timeout(30min, 1min);
  REQUIRE_FALSE(reasons.empty());
  CHECK_MESSAGE(reasons[0].find("consumer_timeout") != std::string::npos, reasons[0]);
  CHECK(summary.consumed == 1);
  CHECK(db.effects() == 1);
  CHECK(broker.ready("timed-out") == 0);
}

}  // namespace
}  // namespace txinbox::test
