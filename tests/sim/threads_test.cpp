// The threads and clocks of the simulator.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "sim/threads.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using sim::Threads;

/// Four threads that write into one text: which one, each hour, and when they end.
std::string text_of(std::uint64_t seed) {
  std::string text;
  Threads::run({.seed = seed, .switch_rate = 0.1}, [&] {
    std::mutex mutex;
    std::condition_variable_any never;
    std::vector<std::jthread> threads;
    for (const char name : {'a', 'b', 'c', 'd'}) {
      threads.emplace_back([&, name](const std::stop_token& stop) {
        for (int i = 0; i < 5; ++i) {
          std::this_thread::sleep_for(1h);
          const std::lock_guard lock(mutex);
          text += name;
        }
        std::unique_lock lock(mutex);
        never.wait_for(lock, stop, 24h, [] { return false; });
        text += '.';
      });
    }
    std::this_thread::sleep_for(10h);
    threads.clear();
    text += std::to_string(std::random_device()());
    text += std::to_string(std::chrono::floor<std::chrono::hours>(Threads::instance()->now()).count());
  });
  return text;
}

TEST_CASE("simulated threads do the same with the same seed, and the hours that they wait take no time") {
  std::set<std::string> texts;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const std::string text = text_of(seed);
    CHECK(text == text_of(seed));
    CHECK(text.ends_with("10"));  // hours
    texts.insert(text);
  }
  CHECK(texts.size() == 10);
}

/// Two threads that each read a number and write it back, one greater. They hold the lock only for each step.
int lost_updates(std::uint64_t seed, double switch_rate) {
  constexpr int each = 20;
  int number = 0;
  Threads::run({.seed = seed, .switch_rate = switch_rate}, [&] {
    std::mutex mutex;
    const auto count = [&] {
      for (int i = 0; i < each; ++i) {
        int seen = 0;
        {
          const std::lock_guard lock(mutex);
          seen = number;
        }
        const std::lock_guard lock(mutex);
        number = seen + 1;
      }
    };
    const std::jthread first(count);
    const std::jthread second(count);
  });
  return 2 * each - number;
}

TEST_CASE("a simulated thread can lose its turn after it has unlocked a mutex") {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CHECK(lost_updates(seed, 0) == 0);
    if (lost_updates(seed, 0.1) > 0) ++found;
  }
  CHECK(found > 10);
}

TEST_CASE("a killed process ends where it waits, and destroys nothing; a stopped one goes on later") {
  int steps = 0;
  int ends = 0;
  Threads::run({.seed = 1}, [&] {
    Threads& threads = *Threads::instance();
    const auto work = [&] {
      const std::shared_ptr<void> end(nullptr, [&](void*) { ++ends; });
      for (int i = 0; i < 100; ++i) {
        std::this_thread::sleep_for(1s);
        ++steps;
      }
    };
    const auto killed = threads.start_process("killed", work);
    threads.sleep_for(10500ms);
    threads.kill(*killed);
    threads.sleep_for(1h);
    CHECK(steps == 10);
    CHECK(ends == 0);
    CHECK_FALSE(threads.has_ended(*killed));

    const auto stopped = threads.start_process("stopped", work);
    threads.sleep_for(10500ms);
    threads.stop_until(*stopped, threads.now() + 1h);
    threads.sleep_for(59min);
    CHECK(steps == 20);
    threads.sleep_for(1h);
    CHECK(steps == 110);
    CHECK(ends == 1);
    CHECK(threads.has_ended(*stopped));
  });
}

TEST_CASE("the clocks of a simulated process") {
  Threads::run({.seed = 1}, [] {
    Threads& threads = *Threads::instance();
    const auto steady = std::chrono::steady_clock::now();
    const auto day = std::chrono::system_clock::now();
    threads.sleep_for(1h);
    CHECK(std::chrono::round<std::chrono::seconds>(std::chrono::steady_clock::now() - steady) == 1h);
    CHECK(std::chrono::round<std::chrono::seconds>(std::chrono::system_clock::now() - day) == 1h);
    threads.current_process().clock_error = -10min;
    CHECK(std::chrono::round<std::chrono::seconds>(std::chrono::system_clock::now() - day) == 50min);
    CHECK(std::chrono::round<std::chrono::seconds>(std::chrono::steady_clock::now() - steady) == 1h);
  });
}

TEST_CASE("the clocks of a process can be too fast or too slow, and its waits end when they show the time") {
  for (const double drift : {0.5, -0.5}) {
    Threads::run({.seed = 1}, [drift] {
      Threads& threads = *Threads::instance();
      bool has_ended = false;
      const auto process = threads.start_process("drifts", [&] {
        const auto begin = std::chrono::steady_clock::now();
        const sim::SimTime right_begin = threads.now();
        std::mutex mutex;
        std::condition_variable never;
        std::unique_lock lock(mutex);
        (void)never.wait_until(lock, begin + 3s, [] { return false; });
        CHECK(std::chrono::round<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin) == 3s);
        const auto right = std::chrono::round<std::chrono::milliseconds>(threads.now() - right_begin);
        CHECK(right == (drift > 0 ? 2s : 6s));
        has_ended = true;
      });
      process->drift = drift;
      threads.sleep_for(10s);
      CHECK(has_ended);
    });
  }
}

}  // namespace
}  // namespace txinbox::test
