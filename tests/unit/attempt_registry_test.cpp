#include "consume/attempt_registry.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/error.hpp>

namespace txinbox::detail {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds for_ever = std::chrono::hours(1);
constexpr milliseconds at_once{1};

std::optional<ErrorCode> refusal(AttemptRegistry& flight, bool exclusive, milliseconds longest,
                                 std::stop_token stop = {}) {
  std::optional<ErrorCode> code;
  // On a separate thread, because on this one it would be a nested attempt.
  std::thread([&] {
    try {
      const auto place = flight.enter(exclusive, longest, stop);
    } catch (const Error& e) {
      code = e.code();
    }
  }).join();
  return code;
}

TEST_CASE("attempts that are not exclusive are in flight together, and none waits") {
  AttemptRegistry flight;
  const auto place = flight.enter(false, at_once, {});
  CHECK(!place.exclusive());
  CHECK(!place.waited());
  CHECK(!refusal(flight, false, at_once));
}

TEST_CASE("an exclusive attempt keeps others out until it ends, as long as they wait") {
  AttemptRegistry flight;
  auto place = flight.enter(true, at_once, {});
  CHECK(place.exclusive());
  CHECK(refusal(flight, false, at_once) == ErrorCode::acquire_timeout);
  CHECK(refusal(flight, true, at_once) == ErrorCode::acquire_timeout);
  place.leave();
  CHECK(!place.exclusive());
  CHECK(!refusal(flight, false, at_once));
  CHECK(!refusal(flight, true, at_once));
}

TEST_CASE("an exclusive attempt begins when no other is in flight") {
  AttemptRegistry flight;
  auto place = flight.enter(false, at_once, {});
  CHECK(refusal(flight, true, at_once) == ErrorCode::acquire_timeout);
  std::atomic<bool> in = false;
  std::thread waiting([&] {
    const auto exclusive = flight.enter(true, for_ever, {});
    CHECK(exclusive.exclusive());
    in = true;
  });
  // Even if the exclusive attempt does not wait yet, it must not begin while this one runs.
  CHECK(!in);
  place.leave();
  waiting.join();
  CHECK(in);
}

TEST_CASE("an attempt that waits to be exclusive begins before later attempts") {
  AttemptRegistry flight;
  auto place = flight.enter(false, at_once, {});
  std::thread waiting([&] { CHECK(flight.enter(true, for_ever, {}).waited()); });
  // Other attempts may begin until the exclusive one waits, and then no more.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  bool refused = false;
  while (!refused && std::chrono::steady_clock::now() < give_up) refused = refusal(flight, false, at_once).has_value();
  CHECK(refused);
  place.leave();
  waiting.join();
  CHECK(!refusal(flight, false, at_once));
}

TEST_CASE("an attempt that gives up waiting blocks no other") {
  AttemptRegistry flight;
  const auto place = flight.enter(false, at_once, {});
  CHECK(refusal(flight, true, at_once) == ErrorCode::acquire_timeout);
  CHECK(!refusal(flight, false, at_once));
}

TEST_CASE("a stop token ends the wait") {
  AttemptRegistry flight;
  const auto place = flight.enter(true, at_once, {});
  std::stop_source stop;
  std::thread stopper([&] { stop.request_stop(); });
  CHECK(refusal(flight, false, for_ever, stop.get_token()) == ErrorCode::stopped);
  stopper.join();
}

TEST_CASE("a nested attempt of the same thread begins at once, and is not exclusive") {
  AttemptRegistry flight;
  for (const bool outer_exclusive : {false, true}) {
    const auto outer = flight.enter(outer_exclusive, at_once, {});
    {
      const auto inner = flight.enter(true, at_once, {});
      CHECK(!inner.exclusive());
      CHECK(!inner.waited());
    }
    CHECK(outer.exclusive() == outer_exclusive);
    CHECK(refusal(flight, true, at_once) == ErrorCode::acquire_timeout);
    if (outer_exclusive) CHECK(refusal(flight, false, at_once) == ErrorCode::acquire_timeout);
  }
  CHECK(!refusal(flight, true, at_once));
}

TEST_CASE("with many threads no attempt runs beside an exclusive one") {
  AttemptRegistry flight;
  std::atomic<int> inside = 0;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const auto place = flight.enter((i + t) % 3 == 0, for_ever, {});
        const int with_us = ++inside;
        if (place.exclusive() && with_us != 1) ++wrong;
        std::this_thread::yield();
        if (place.exclusive() && inside != 1) ++wrong;
        --inside;
      }
    });
  }
  for (auto& each : threads) each.join();
  CHECK(wrong == 0);
}

TEST_CASE("a child of fork() is another process, with nothing in flight") {
  const auto place = AttemptRegistry::of_process().enter(true, at_once, {});
  const auto parent = AttemptRegistry::of_process().process();
  const pid_t child = ::fork();
  if (child == 0) {
    AttemptRegistry& flight = AttemptRegistry::of_process();
    const bool own = flight.process().bytes() != parent.bytes() && &flight == &AttemptRegistry::of_process();
    ::_exit(own && !refusal(flight, true, at_once) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(AttemptRegistry::of_process().process().bytes() == parent.bytes());
}

}  // namespace
}  // namespace txinbox::detail
