#pragma once

#include <chrono>
#include <thread>

#include "support/test_database.hpp"

namespace txinbox::test {

/// Waits until the condition is true, at most a minute. Returns whether it became true.
template <class F>
bool eventually(const F& condition) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < give_up) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

/// Waits until a relay has published everything.
inline bool outbox_becomes_empty(const TestDatabase& db) {
  return eventually([&] { return db.number("select count(*) from txinbox_outbox_message") == 0; });
}

}  // namespace txinbox::test
