#pragma once

// Consumers whose processes are killed at named steps of a delivery. The tests of each component include this file.
//
// A process that is killed is this test program again, with the skipped test case that calls `consume_until_killed`.

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "brokers/broker_under_test.hpp"
#include "support/child_process.hpp"
#include "support/counts.hpp"
#include "support/effects.hpp"

namespace txinbox::test {

/// Opens the source of a queue or topic.
using OpenSource = std::function<std::unique_ptr<Source>(const std::string& name)>;

/// The steps at which a process can be killed: after a poll has returned messages, in the handler after its SQL, after
/// the COMMIT, after the broker has confirmed a dead letter, and after an acknowledgement. At one more step,
/// "rebalance", the broker takes lanes away: it needs a second consumer that joins.
inline const std::vector<std::string> kill_steps = {"poll", "handler", "commit", "dead letter", "acknowledgement"};

/// Kills this process when it reaches a step for the n-th time.
class StepKiller {
 public:
  StepKiller(std::string step, int n) : step_(std::move(step)), left_(n) {}

  void reach(std::string_view step) {
    if (step == step_ && --left_ == 0) die();
  }

 private:
  const std::string step_;
  int left_;
};

/// A source that reports its steps to a `StepKiller`.
class KilledSource : public Source {
 public:
  KilledSource(std::unique_ptr<Source> source, StepKiller& killer) : source_(std::move(source)), killer_(killer) {
    source_->on_event([this](const SourceEvent& event) {
      if (event.type == SourceEventType::lanes_leaving) killer_.reach("rebalance");
      report(event.type, event.text);
    });
  }

  std::vector<Incoming> poll(std::size_t max, std::chrono::milliseconds wait) override {
    std::vector<Incoming> messages = source_->poll(max, wait);
    if (!messages.empty()) killer_.reach("poll");
    return messages;
  }
  void acknowledge(std::span<const Incoming* const> messages) override {
    killer_.reach("commit");
    source_->acknowledge(messages);
    killer_.reach("acknowledgement");
  }
  bool has_dead_letters() const override { return source_->has_dead_letters(); }
  void dead_letter(std::span<DeadLetter> letters) override {
    source_->dead_letter(letters);
    for (const DeadLetter& each : letters) {
      if (each.confirmed) killer_.reach("dead letter");
    }
  }
  bool holds(const Incoming& message) const override { return source_->holds(message); }
  void pause(std::uint64_t lane) override { source_->pause(lane); }
  void resume(std::uint64_t lane) override { source_->resume(lane); }
  void wake() noexcept override { source_->wake(); }
  SourceStatus status() override { return source_->status(); }
  void close() noexcept override { source_->close(); }

 private:
  std::unique_ptr<Source> source_;
  StepKiller& killer_;
};

/// The key of a message is its body. The body of a bad message has no key.
inline Message key_of_body(const Incoming& in) {
  if (in.body.starts_with("bad")) throw std::runtime_error("the body has no key");
  return {.business_key = std::string(in.body), .message_id = std::string(in.id)};
}

/// Consumes until the broker has had no message for `idle`.
inline RunSummary consume_all(Source& source, Pool& pool, std::chrono::milliseconds idle, StepKiller& killer) {
  using namespace std::chrono_literals;
  TxConsumer consumer(pool, "svc");
  return run(source, consumer, key_of_body,
             [&](soci::session& sql, Delivery& delivery) {
               add_effect(sql, delivery);
               killer.reach("handler");
             },
             {.batch = 10, .backoff = 10ms, .max_backoff = 500ms, .idle_exit = idle});
}

/// The work of a process that is killed. `run_until_killed` gives it the environment.
inline void consume_until_killed(const OpenSource& open) {
  StepKiller killer(variable("TXINBOX_KILL_STEP"), std::stoi(variable("TXINBOX_KILL_TIME")));
  KilledSource source(open(variable("TXINBOX_KILL_QUEUE")), killer);
  Pool pool = open_pool(variable("TXINBOX_KILL_DATABASE"), {.connections = 1});
  (void)consume_all(source, pool, std::chrono::minutes(1), killer);  // a process that misses its step ends
}

/// Starts this program with a skipped test case, and waits for its end. Returns the signal that killed it, or 0.
inline int run_skipped_test(const std::string& test_case, const std::vector<std::string>& variables) {
  std::array<std::string, 3> words = {"/proc/self/exe", "--no-skip", "--test-case=" + test_case};
  std::vector<char*> arguments;
  for (std::string& each : words) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  std::vector<std::string> copies = variables;
  std::vector<char*> environment;
  for (std::string& each : copies) environment.push_back(each.data());
  for (char** each = environ; *each != nullptr; ++each) environment.push_back(*each);
  environment.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawn(&child, words[0].c_str(), nullptr, nullptr, arguments.data(), environment.data()) != 0) {
    throw std::runtime_error("this program cannot be started again");
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("a process cannot be waited for");
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/// Starts a process that consumes from a queue until its n-th arrival at a step kills it, and waits for its end.
/// Returns the signal that killed it, or 0.
inline int run_until_killed(const std::string& test_case, const std::string& step, int n, const std::string& queue,
                            const EffectDatabase& db) {
  return run_skipped_test(test_case, {"TXINBOX_KILL_STEP=" + step, "TXINBOX_KILL_TIME=" + std::to_string(n),
                                      "TXINBOX_KILL_QUEUE=" + queue, "TXINBOX_KILL_DATABASE=" + db.url()});
}

/// Takes all messages of a queue. Returns the different bodies.
inline std::set<std::string> bodies_of(Source& source, std::chrono::milliseconds idle) {
  std::set<std::string> bodies;
  for (auto last = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() < last + idle;) {
    const std::vector<Incoming> messages = source.poll(100, std::chrono::milliseconds(200));
    std::vector<const Incoming*> all;
    for (const Incoming& each : messages) {
      bodies.insert(std::string(each.body));
      all.push_back(&each);
    }
    if (!all.empty()) last = std::chrono::steady_clock::now();
    source.acknowledge(all);
  }
  return bodies;
}

/// Two consumers run. Each is killed at one step after the other. `idle` is longer than the time after which the broker
/// redelivers the messages of a process that was killed.
inline void kill_at_each_step(BrokerUnderTest& broker, const std::string& name, const OpenSource& open,
                              const std::string& test_case, std::chrono::milliseconds idle) {
  const int times = kills(10);
  const int keys = 200 + 40 * times;  // enough that each process reaches its step
  (void)broker.create(name);
  for (int time = 0; time < 2; ++time) {
    for (int i = 0; i < keys; ++i) {
      const std::string key = "key" + std::to_string(i);
      broker.publish(name, key, key);
      if (time == 1 || i % 10 != 0) continue;
      const std::string body = "bad" + std::to_string(i);
      broker.publish(name, body, body);
    }
  }
  broker.flush();
  const EffectDatabase db;
  std::atomic<int> started = 0;
  std::atomic<int> killed = 0;
  const auto be_killed = [&] {
    for (int i = started++; i < times; i = started++) {
      const std::string& step = kill_steps.at(static_cast<std::size_t>(i) % kill_steps.size());
      if (run_until_killed(test_case, step, 1 + i % 3, name, db) == SIGKILL) ++killed;
    }
  };
  std::thread other(be_killed);
  be_killed();
  other.join();
  CHECK(killed == times);

  Pool pool = open_pool(db.url(), {.connections = 1});
  StepKiller none("", 0);
  (void)consume_all(*open(name), pool, idle, none);
  count(killed, "consumers killed at a named step");
  count(keys, "keys");
  count(db.effects(), "effects");
  CHECK(db.effects() == keys);
  CHECK(db.number("select count(distinct id) from effect") == keys);
  CHECK(consume_all(*open(name), pool, idle, none).received == 0);
  const std::string dead = broker.dead_letters_of(name);
  if (dead.empty()) return;
  (void)broker.create(dead);  // its source checks that it has dead letters, too
  CHECK(bodies_of(*open(dead), std::chrono::seconds(4)).size() == static_cast<std::size_t>(keys / 10));
}

}  // namespace txinbox::test
