#include "consume/recent_key_cache.hpp"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/error.hpp>

namespace txinbox::detail {
namespace {

using std::chrono::milliseconds;

/// With an age that no test reaches.
RecentKeys keys(std::size_t capacity) { return {.capacity = capacity, .max_age = std::chrono::hours(1)}; }

TEST_CASE("only added keys are found, with the same content") {
  RecentKeyCache memory(keys(10));
  CHECK(memory.enabled());
  CHECK(!memory.knows("a", "", 0));
  memory.remember("a", "", 0, 0);
  memory.remember("b", "hash", 0, 0);
  CHECK(memory.knows("a", "", 0));
  CHECK(memory.knows("b", "hash", 0));
  CHECK(!memory.knows("a", "hash", 0));
  CHECK(!memory.knows("b", "", 0));
  CHECK(!memory.knows("b", "other", 0));
  CHECK(!memory.knows("c", "", 0));
}

TEST_CASE("keys are compared byte for byte") {
  RecentKeyCache memory(keys(10));
  memory.remember("order", "", 0, 0);
  for (const std::string other : {"Order", "order ", "orde", "order1", ""}) CHECK(!memory.knows(other, "", 0));
}

TEST_CASE("the cache copies the keys that it is given") {
  RecentKeyCache memory(keys(10));
  std::string key(100, 'k');
  std::string hash(32, 'h');
  memory.remember(key, hash, 0, 0);
  key.assign(100, 'x');
  hash.assign(32, 'x');
  CHECK(memory.knows(std::string(100, 'k'), std::string(32, 'h'), 0));
  CHECK(!memory.knows(key, hash, 0));
}

TEST_CASE("a full cache drops the oldest key") {
  RecentKeyCache memory(keys(2));
  memory.remember("a", "", 0, 0);
  memory.remember("b", "", 0, 0);
  memory.remember("c", "", 0, 0);
  CHECK(!memory.knows("a", "", 0));
  CHECK(memory.knows("b", "", 0));
  CHECK(memory.knows("c", "", 0));
}

TEST_CASE("a key that is added again is kept once, as the latest and with its latest content") {
  RecentKeyCache memory(keys(2));
  memory.remember("a", "1", 0, 0);
  memory.remember("b", "", 0, 0);
  memory.remember("a", "2", 0, 0);
  CHECK(memory.knows("b", "", 0));
  CHECK(memory.knows("a", "2", 0));
  CHECK(!memory.knows("a", "1", 0));
  memory.remember("c", "", 0, 0);
  CHECK(!memory.knows("b", "", 0));
  CHECK(memory.knows("a", "2", 0));
}

TEST_CASE("a cache of one key works") {
  RecentKeyCache memory(keys(1));
  for (int i = 0; i < 1000; ++i) memory.remember(std::to_string(i), "", 0, 0);
  CHECK(memory.knows("999", "", 0));
  CHECK(!memory.knows("998", "", 0));
}

TEST_CASE("a key that is older than the maximum age is not found, and a younger one is") {
  RecentKeyCache memory({.capacity = 10, .max_age = milliseconds(1)});
  memory.remember("a", "", 0, 0);
  std::this_thread::sleep_for(milliseconds(3));
  CHECK(!memory.knows("a", "", 0));

  RecentKeyCache lasting(keys(10));
  lasting.remember("a", "", 0, 0);
  std::this_thread::sleep_for(milliseconds(3));
  CHECK(lasting.knows("a", "", 0));
}

TEST_CASE("a lost connection empties the cache, and keys that were committed during the loss are not cached") {
  RecentKeyCache memory(keys(10));
  memory.remember("before", "", 0, 0);
  CHECK(memory.knows("before", "", 0));
  CHECK(!memory.knows("before", "", 1));
  CHECK(!memory.knows("before", "", 0));  // a caller who read the count before this must not add the key again

  memory.remember("around", "", 0, 1);  // began before the loss
  CHECK(!memory.knows("around", "", 1));
  memory.remember("late", "", 0, 0);  // does not know about the loss yet
  CHECK(!memory.knows("late", "", 1));
  memory.remember("after", "", 1, 1);
  CHECK(memory.knows("after", "", 1));

  memory.remember("seen only now", "", 1, 2);
  CHECK(!memory.knows("seen only now", "", 2));
  CHECK(!memory.knows("after", "", 2));
}

TEST_CASE("a capacity of zero is off") { CHECK(!RecentKeyCache(RecentKeys{}).enabled()); }

TEST_CASE("an invalid age is refused") {
  for (const milliseconds age : {milliseconds(0), milliseconds(-1),
                                 milliseconds(std::chrono::days(24)) + milliseconds(1), milliseconds::max()}) {
    ErrorCode code{};
    try {
      const RecentKeyCache memory({.capacity = 1, .max_age = age});
    } catch (const Error& e) {
      code = e.code();
    }
    CHECK(code == ErrorCode::invalid_argument);
  }
  CHECK_NOTHROW(RecentKeyCache({.capacity = 1, .max_age = std::chrono::days(24)}));
}

TEST_CASE("many threads never see another's key under theirs") {
  RecentKeyCache memory(keys(50));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string hash = std::to_string(t);
      for (int i = 0; i < 2000; ++i) {
        const std::string key = hash + "-" + std::to_string(i % 40);
        memory.remember(key, hash, 0, 0);
        if (memory.knows(key, std::to_string((t + 1) % 4), 0)) ++wrong;
        memory.knows(std::to_string((t + 1) % 4) + "-" + std::to_string(i % 40), hash, i == 1000 && t == 0 ? 1U : 0U);
      }
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace txinbox::detail
