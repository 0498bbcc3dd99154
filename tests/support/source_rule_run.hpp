#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/source_subject.hpp"

/// The cases of the rule of `Source` in which `run` calls the source. source_subject.hpp says how a file of tests
/// invokes them.
namespace txinbox::test {

TEST_CASE_TEMPLATE_DEFINE("the rule of sources: a stop ends run although the broker has fallen silent", Subject,
                          source_lets_run_stop) {
  static_assert(SilentSubject<Subject>);
  using namespace std::chrono_literals;
  for (const Silence when : Subject::silences()) {
    CAPTURE(static_cast<int>(when));
    Subject subject;
    // `run` acknowledges one of them, and makes a dead letter of the other one.
    for (const char* body : {"m0", "m1"}) subject.publish({.body = body});
    const auto source = subject.open();
    const EffectDatabase db;
    Pool pool = db.pool(2);
    std::stop_source stop;
    TxConsumer consumer(pool, "svc", {.stop = stop.get_token()});
    std::atomic<bool> is_silent = false;
    const auto fall_silent_once = [&] {
      if (!is_silent) fall_silent(subject, when);
      is_silent = true;
    };
    if (when == Silence::at_start) fall_silent_once();
    std::optional<RuleClock::time_point> stopped;
    const std::jthread stopper([&](const std::stop_token& end) {
      while (!is_silent && !end.stop_requested()) std::this_thread::sleep_for(10ms);
      std::this_thread::sleep_for(1s);
      stopped = RuleClock::now();
      stop.request_stop();
    });
    int messages = 0;
    const RunSummary summary = run(
        *source, consumer,
        [&](const Incoming& in) {
          if (++messages == 2) throw Error(ErrorCode::invalid_key, "the second message has no key");
          return Message{.business_key = std::string(in.id)};
        },
        [&](soci::session& sql, Delivery& delivery) {
          add_effect(sql, delivery);
          fall_silent_once();
        },
        {.batch = 1, .max_in_flight = 10});
    REQUIRE(stopped);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(RuleClock::now() - *stopped);
    CHECK_MESSAGE(took < Subject::longest_stop, "run took " << took.count() << " ms");
    CHECK(summary.end == RunEnd::stopped);
    CHECK((summary.consumed == 1) == (when != Silence::at_start));
  }
}

}  // namespace txinbox::test
