// A RocketMQ proxy that connects and then does not answer, or answers with an error.

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/rocketmq.hpp>
#include <txinbox/txinbox.hpp>

#include "fake_proxy.hpp"
#include "support/effects.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("RocketMQ: a source that gets no settings from the proxy reports this, and connects again") {
  FakeProxy proxy;
  const auto source =
      open_rocketmq({.server = {.host = "127.0.0.1", .port = proxy.port()}, .topic = "orders", .group = "g"});
  std::vector<std::string> warnings;
  source->on_event([&](const SourceEvent& event) {
    if (event.type == SourceEventType::warning) warnings.push_back(event.text);
  });
  const auto give_up = std::chrono::steady_clock::now() + 30s;
  const auto poll_until = [&](auto condition) {
    while (!condition() && std::chrono::steady_clock::now() < give_up) (void)source->poll(1, 50ms);
    return condition();
  };
  CHECK(poll_until([&] { return !warnings.empty(); }));
  if (!warnings.empty()) CHECK_MESSAGE(warnings[0].find("settings") != std::string::npos, warnings[0]);
  CHECK_FALSE(source->status().connected);
  proxy.answer_settings();
  CHECK(poll_until([&] { return source->status().connected; }));
  source->close();
}

/// The message of the proxy has no key, so it is a dead letter. `run` ends when the dead letter is confirmed. `react`
/// is called each time that it is not confirmed, with the number of times.
template <class React>
RunSummary run_with_dead_letter(FakeProxy& proxy, const EffectDatabase& db, std::chrono::milliseconds timeout,
                                React react) {
  proxy.answer_settings();
  proxy.deliver();
  const auto source = open_rocketmq({.server = {.host = "127.0.0.1", .port = proxy.port()},
                                     .topic = "orders",
                                     .group = "g",
                                     .dead_letter_timeout = timeout});
  Pool pool = db.pool(1);
  std::stop_source stop;
  int times = 0;
  RunOptions options{.backoff = 5ms, .max_backoff = 50ms, .idle_exit = 30s};
  const auto listener = on_event([&](const RunEvent& event) {
    if (event.type == RunEventType::dead_letter_failed) {
      CHECK(event.reason == "invalid_key");
      react(++times);
    }
    if (event.type == RunEventType::dead_letter) stop.request_stop();
  });
  TxConsumer consumer(pool, "svc", {.stop = stop.get_token(), .listeners = {listener}});
  return run(*source, consumer, key_from("@key"), add_effect, options);
}

TEST_CASE("RocketMQ: a dead letter that the proxy refuses is tried again, and the message is not acknowledged") {
  FakeProxy proxy;
  proxy.answer_dead_letters(FakeProxy::Answer::error);
  const EffectDatabase db;
  int refused = 0;
  const RunSummary summary = run_with_dead_letter(proxy, db, 5s, [&](int times) {
    refused = times;
    if (times == 2) proxy.answer_dead_letters(FakeProxy::Answer::ok);
  });
  CHECK(refused >= 2);
  CHECK(proxy.dead_letters() == refused + 1);
  CHECK(summary.dead_letters == 1);
  CHECK(proxy.acknowledgements() == 0);
}

TEST_CASE("RocketMQ: while the proxy does not answer, a dead letter is not confirmed, and not sent a second time") {
  FakeProxy proxy;
  proxy.answer_dead_letters(FakeProxy::Answer::none);
  const EffectDatabase db;
  int unconfirmed = 0;
  const RunSummary summary = run_with_dead_letter(proxy, db, 300ms, [&](int times) {
    unconfirmed = times;
    if (times == 3) proxy.answer_dead_letters(FakeProxy::Answer::ok);
  });
  CHECK(unconfirmed >= 3);
  CHECK(proxy.dead_letters() == 1);
  CHECK(summary.dead_letters == 1);
  CHECK(proxy.acknowledgements() == 0);
}

TEST_CASE("RocketMQ: close also gives back a message whose invisible time is just being prolonged") {
  FakeProxy proxy;
  proxy.answer_settings();
  proxy.answer_changes(FakeProxy::Answer::none);
  proxy.deliver();
  const auto source = open_rocketmq(
      {.server = {.host = "127.0.0.1", .port = proxy.port()}, .topic = "orders", .group = "g", .invisible = 10s});
  std::vector<Incoming> taken;
  const auto give_up = std::chrono::steady_clock::now() + 30s;
  while (proxy.changes().empty() && std::chrono::steady_clock::now() < give_up) {
    for (Incoming& each : source->poll(1, 50ms)) taken.push_back(std::move(each));
  }
  REQUIRE(taken.size() == 1);
  // After half of the invisible time, the source prolongs it. Only `close` handles the answer.
  REQUIRE(proxy.changes() == std::vector<FakeProxy::Change>{{.handle = "first", .seconds = 10}});
  proxy.answer_changes(FakeProxy::Answer::ok);
  source->close();
  REQUIRE(proxy.changes().size() == 2);
  CHECK(proxy.changes()[1] == FakeProxy::Change{.handle = "changed", .seconds = 0});
  CHECK(proxy.acknowledgements() == 0);
}

using Change = FakeProxy::Change;

TEST_CASE("RocketMQ: close also gives back the messages of an answer that is on its way") {
  FakeProxy proxy;
  proxy.answer_settings();
  proxy.deliver({"first"});
  const auto source =
      open_rocketmq({.server = {.host = "127.0.0.1", .port = proxy.port()}, .topic = "orders", .group = "g"});
  const auto give_up = std::chrono::steady_clock::now() + 30s;
  std::vector<Incoming> taken;
  while (taken.empty() && std::chrono::steady_clock::now() < give_up) taken = source->poll(1, 50ms);
  REQUIRE(taken.size() == 1);
  REQUIRE(source->poll(1, 50ms).empty());  // it has asked for more
  proxy.deliver({"late"});
  source->close();
  for (const char* handle : {"first", "late"}) {
    const auto changes = proxy.changes();
    CHECK(std::ranges::count(changes, Change{.handle = handle, .seconds = 0}) == 1);
  }
}

TEST_CASE("RocketMQ: if a message of a group is lost, the later messages of the group are given back") {
  FakeProxy proxy;
  proxy.be_fifo();
  proxy.answer_settings();
  proxy.refuse_changes_of("first");
  proxy.deliver({"first", "second", "third"});
  const auto source = open_rocketmq(
      {.server = {.host = "127.0.0.1", .port = proxy.port()}, .topic = "orders", .group = "g", .invisible = 10s});
  bool is_lost = false;
  source->on_event([&](const SourceEvent& event) { is_lost |= event.type == SourceEventType::lanes_revoked; });
  std::vector<Incoming> taken;
  const auto give_up = std::chrono::steady_clock::now() + 30s;
  const auto poll_until = [&](std::size_t most, auto condition) {
    while (!condition() && std::chrono::steady_clock::now() < give_up) {
      for (Incoming& each : source->poll(most, 50ms)) taken.push_back(std::move(each));
    }
    return condition();
  };
  REQUIRE(poll_until(2, [&] { return taken.size() == 2; }));
  REQUIRE(taken[0].lane == taken[1].lane);
  REQUIRE(poll_until(0, [&] { return is_lost; }));  // after half of the invisible time
  CHECK_FALSE(source->holds(taken[0]));
  CHECK(source->holds(taken[1]));
  source->give_back(taken[1]);
  CHECK_FALSE(source->holds(taken[1]));
  const auto is_given_back = [&](const char* handle) {
    const auto changes = proxy.changes();
    return std::ranges::count(changes, Change{.handle = handle, .seconds = 0}) == 1;
  };
  // The source has prolonged the two messages, so their handles have changed.
  CHECK(poll_until(9, [&] {
    const auto changes = proxy.changes();
    return std::ranges::count(changes, Change{.handle = "changed", .seconds = 0}) == 2;
  }));
  CHECK_FALSE(is_given_back("first"));
  CHECK(taken.size() == 2);  // not the third one, which the source had at this time
}

TEST_CASE(
    "RocketMQ: a message that is not confirmed fails if the proxy answers, and counts for nothing if it does not") {
  std::optional<FakeProxy> proxy(std::in_place);
  const Publisher publish = rocketmq_publisher({.server = {.host = "127.0.0.1", .port = proxy->port()}, .timeout = 1s});
  const std::vector<OutgoingMessage> one{{.topic = "orders", .key = "k", .payload = "body", .id = "1"}};
  const auto results = publish(one);
  REQUIRE(results.size() == 1);
  CHECK(results[0].status == PublishStatus::failed);
  proxy.reset();
  CHECK_THROWS_AS(publish(one), std::runtime_error);
}

}  // namespace
}  // namespace txinbox::test
