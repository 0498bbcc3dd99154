// Orders of events in which an inbox runs two handlers at the same time, or runs a consumed message again, if it
// deletes and completes its claims without a token.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <txinbox/txinbox.hpp>

#include "support/lease_subject.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// The act of the first worker after its lease has expired.
enum class Ending { returns, throws };

/// Delivers the message to a worker whose lease expires. Its handler calls `meanwhile` and then ends. Returns what
/// `consume` throws.
template <class F>
std::string slow_worker(const LeaseSubject& t, Ending ending, const F& meanwhile) {
  LeaseConsumer slow = t.consumer();
  return thrown_by([&] {
    (void)slow.consume(order, [&](Lease&) {
      t.let_run_out();
      meanwhile();
      if (ending == Ending::throws) throw std::runtime_error("too late");
    });
  });
}

TEST_CASE("the first worker fails late while the second runs: a third delivery is in progress") {
  const LeaseSubject t;
  std::atomic<bool> second_runs = false;
  std::atomic<bool> first_has_failed = false;
  std::thread second;
  const auto begin_second = [&] {
    second = std::thread([&] {
      const auto handler = [&](Lease&) {
        second_runs = true;
        while (!first_has_failed) std::this_thread::sleep_for(1ms);
        CHECK(t.state() == "consuming");
      };
      CHECK(t.consumer().consume(order, handler).outcome == consumed);
    });
    while (!second_runs) std::this_thread::sleep_for(1ms);
  };
  CHECK(slow_worker(t, Ending::throws, begin_second) == "other");
  CHECK(t.consumer().consume(order, must_not_run).outcome == in_progress);
  first_has_failed = true;
  second.join();
  CHECK(t.state() == "consumed");
}

TEST_CASE("the first worker returns late after the second failed: it gets lease_lost, and the message runs again") {
  const LeaseSubject t;
  CHECK(slow_worker(t, Ending::returns, [&] {
          CHECK_THROWS_AS((void)t.consumer().consume(order, [](Lease&) { throw std::runtime_error("no"); }),
                          std::runtime_error);
        }) == "lease_lost");
  CHECK(t.state() == "consuming");
  CHECK(t.consumer().consume(order, nothing).outcome == consumed);
}

TEST_CASE("the first worker fails late after the second completed: the message stays consumed") {
  const LeaseSubject t;
  CHECK(slow_worker(t, Ending::throws, [&] { CHECK(t.consumer().consume(order, nothing).outcome == consumed); }) ==
        "other");
  CHECK(t.state() == "consumed");
  CHECK(t.consumer().consume(order, must_not_run).outcome == duplicate);
}

TEST_CASE("the key is removed before a delivery: the delivery runs under a lease of its own") {
  const LeaseSubject t;
  std::int64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    (void)t.forget("order123");
    const auto handler = [&](Lease& lease) {
      CHECK(lease.fence() >= last);
      last = lease.fence();
      CHECK(t.state() == "consuming");
      CHECK(t.consumer().consume(order, must_not_run).outcome == in_progress);
    };
    CHECK(t.consumer().consume(order, handler).outcome == consumed);
  }
}

}  // namespace
}  // namespace txinbox::test
