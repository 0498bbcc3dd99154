// `run` while an operator has paused the consumer.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/operations.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/eventually.hpp"
#include "support/memory_broker.hpp"
#include "support/run_kit.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

const OperatorAction by{.actor = "ops", .reason = "a repair"};

/// A broker with some messages, and the events of `run`.
struct PausedRun {
  EffectDatabase db;
  Pool pool = db.pool();
  Pool admin = db.pool(1);
  MemoryBroker broker{0};
  MemorySource source{broker};
  std::atomic<int> paused = 0, unpaused = 0;
  ConsumerOptions options;

  PausedRun() {
    for (int i = 0; i < 5; ++i) broker.publish(numbered("order", i));
    options.listeners.push_back(on_event([this](const RunEvent& event) {
      if (event.type == RunEventType::paused) ++paused;
      if (event.type == RunEventType::unpaused) ++unpaused;
    }));
  }

  void pause(std::optional<std::chrono::seconds> duration = {}) {
    pause_consumer(admin.acquire().session(), "svc", by, duration);
  }
  void resume() { CHECK(resume_consumer(admin.acquire().session(), "svc", by)); }

  void check_all_consumed(const RunSummary& summary) const {
    CHECK(summary.consumed == 5);
    CHECK(db.effects() == 5);
    CHECK(broker.acknowledged_in_all() == 5);
    CHECK(paused == 1);
    CHECK(unpaused == 1);
  }
};

TEST_CASE("a consumer that is paused runs nothing until it is resumed, and does not end because it is idle") {
  PausedRun t;
  t.pause();
  std::jthread operator_thread([&] {
    CHECK(eventually([&] { return t.paused == 1; }));
    std::this_thread::sleep_for(200ms);
    CHECK(t.db.effects() == 0);
    t.resume();
  });
  TxConsumer consumer(t.pool, "svc", t.options);
  const RunSummary summary = run(t.source, consumer, body_is_key, add_effect, until_idle());
  operator_thread.join();
  t.check_all_consumed(summary);
  CHECK(summary.retries == 0);
}

/// While `run` has no room, the source loses what it has delivered. It answers a poll with room only after it was asked
/// once, like a broker that is far away, and it does not know whether messages wait.
class LateSource : public MemorySource {
 public:
  using MemorySource::MemorySource;

  std::vector<Incoming> poll(std::size_t max, std::chrono::milliseconds wait) override {
    if (max == 0) {
      ++polls_without_room;
      if (!std::exchange(has_lost_, true)) take_back(0);
    } else if (!is_asked_) {
      std::this_thread::sleep_for(std::min(wait, 20ms));
      is_asked_ = true;
      return {};
    }
    is_asked_ = max > 0;
    return MemorySource::poll(max, wait);
  }

  SourceStatus status() override {
    SourceStatus status = MemorySource::status();
    status.at_end.reset();
    return status;
  }

  int polls_without_room = 0;

 private:
  bool is_asked_ = false, has_lost_ = false;
};

TEST_CASE("a pause is no idle time, also if the broker takes back what was delivered") {
  PausedRun t;
  t.pause();
  LateSource source(t.broker);
  RunOptions options = until_idle();
  options.idle_exit = 500ms;
  std::jthread operator_thread([&] {
    CHECK(eventually([&] { return t.paused == 1; }));
    std::this_thread::sleep_for(1500ms);
    t.resume();
  });
  TxConsumer consumer(t.pool, "svc", t.options);
  const RunSummary summary = run(source, consumer, body_is_key, add_effect, options);
  operator_thread.join();
  t.check_all_consumed(summary);
  CHECK(source.polls_without_room < 100);  // it waits, and asks the database once a second
}

TEST_CASE("a pause ends by itself when its time is over") {
  PausedRun t;
  t.pause(1s);
  LeaseConsumer consumer(t.pool, "svc", {}, t.options);
  const RunSummary summary = run(
      t.source, consumer, body_is_key,
      [&](Lease& lease) {
        const auto sql = t.db.session();
        add_effect(*sql, lease.delivery());
      },
      until_idle());
  t.check_all_consumed(summary);
}

TEST_CASE("a consumer that is paused while it works finishes its messages, and begins no others") {
  PausedRun t;
  std::atomic<int> after_pause = 0;
  std::atomic<bool> is_paused = false;
  std::jthread operator_thread([&] {
    CHECK(eventually([&] { return t.db.effects() >= 1; }));
    t.pause();
    CHECK(eventually([&] { return t.paused == 1; }));
    is_paused = true;
    std::this_thread::sleep_for(200ms);
    is_paused = false;
    t.resume();
  });
  TxConsumer consumer(t.pool, "svc", t.options);
  RunOptions one_by_one = until_idle();
  one_by_one.batch = 1;
  const RunSummary summary = run(
      t.source, consumer, body_is_key,
      [&](soci::session& sql, Delivery& delivery) {
        if (is_paused) ++after_pause;
        add_effect(sql, delivery);
        std::this_thread::sleep_for(500ms);
      },
      one_by_one);
  operator_thread.join();
  t.check_all_consumed(summary);
  CHECK(after_pause == 0);
}

TEST_CASE("run ends while the consumer is paused") {
  PausedRun t;
  t.pause();
  std::stop_source stop;
  t.options.stop = stop.get_token();
  std::jthread operator_thread([&] {
    CHECK(eventually([&] { return t.paused == 1; }));
    stop.request_stop();
  });
  TxConsumer consumer(t.pool, "svc", t.options);
  const RunSummary summary = run(t.source, consumer, body_is_key, add_effect, until_idle());
  operator_thread.join();
  CHECK(summary.consumed == 0);
  CHECK(summary.end == RunEnd::stopped);
  CHECK(t.unpaused == 1);
  CHECK(t.broker.acknowledged_in_all() == 0);
}

TEST_CASE("without the table of pauses, and for another consumer's pause, run works as usual") {
  PausedRun t;
  SUBCASE("no table") { t.db.run("drop table txinbox_pause"); }
  SUBCASE("another consumer") { pause_consumer(t.admin.acquire().session(), "another", by); }
  TxConsumer consumer(t.pool, "svc", t.options);
  CHECK(run(t.source, consumer, body_is_key, add_effect, until_idle()).consumed == 5);
  CHECK(t.paused == 0);
  CHECK(t.unpaused == 0);
}

}  // namespace
}  // namespace txinbox::test
