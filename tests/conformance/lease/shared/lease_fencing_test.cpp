// Expired leases: one worker takes over, and then the previous worker can change nothing.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/txinbox.hpp>

#include "support/guard_cases.hpp"
#include "support/lease_subject.hpp"
#include "support/outcomes.hpp"
#include "support/schema_tools.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a worker whose lease was taken over can neither complete, release nor extend its successor's lease") {
  const LeaseSubject t;
  LeaseConsumer consumer = t.consumer();
  const auto expires = [&] { return t.ends(); };
  const auto slow = [&](Lease& lease) {
    t.let_run_out();
    const auto successor = [&](Lease&) {
      const auto before = expires();
      CHECK(thrown_by([&] { lease.renew(); }) == "lease_lost");
      CHECK(expires() == before);
      CHECK(t.state() == "consuming");
    };
    CHECK(t.consumer().consume(order, successor).outcome == consumed);
  };
  SUBCASE("the handler returns") {
    CHECK(thrown_by([&] { (void)consumer.consume(order, slow); }) == "lease_lost");
  }
  SUBCASE("the handler throws") {
    CHECK_THROWS_AS((void)consumer.consume(order,
                                           [&](Lease& lease) {
                                             slow(lease);
                                             throw std::runtime_error("late");
                                           }),
                    std::runtime_error);
  }
  CHECK(t.state() == "consumed");
}

TEST_CASE("an expired lease is taken over with a greater fence, and an event reports it") {
  const LeaseSubject t;
  int taken = 0;
  LeaseConsumer observed = t.consumer({}, {.listeners = {on_event([&](const Event& e) {
                                             if (e.type == EventType::lease_taken_over) ++taken;
                                           })}});
  LeaseConsumer consumer = t.consumer();
  const auto slow = [&](Lease& lease) {
    t.let_run_out();
    CHECK(observed.consume(order, [&](Lease& next) { CHECK(next.fence() > lease.fence()); }).outcome == consumed);
    CHECK(thrown_by([&] { lease.renew(); }) == "lease_lost");
    CHECK(lease.stop_token().stop_requested());
  };
  CHECK(thrown_by([&] { (void)consumer.consume(order, slow); }) == "lease_lost");
  CHECK(taken == 1);
  CHECK(consumer.consume(order, must_not_run).outcome == duplicate);
}

TEST_CASE("the fence also grows after the row was removed") {
  const LeaseSubject t;
  LeaseConsumer consumer = t.consumer();
  std::int64_t last = 0;
  for (int i = 0; i < 4; ++i) {
    CHECK(consumer
              .consume(order,
                       [&](Lease& lease) {
                         CHECK(lease.fence() > last);
                         last = lease.fence();
                       })
              .outcome == consumed);
    CHECK(t.forget("order123"));
    std::this_thread::sleep_for(2ms);  // SQLite's clock counts milliseconds
  }
}

TEST_CASE("if the row is removed while the handler runs, consume throws lease_lost") {
  const LeaseSubject t;
  LeaseConsumer consumer = t.consumer();
  CHECK(thrown_by([&] { (void)consumer.consume(order, [&](Lease&) { CHECK(t.forget("order123")); }); }) ==
        "lease_lost");
  CHECK(t.state().empty());
  CHECK(consumer.consume(order, nothing).outcome == consumed);
}

TEST_CASE("of many workers that find the same expired lease, one takes over") {
  const LeaseSubject t;
  for (int round = 0; round < 10; ++round) {
    const Message message{.business_key = "k" + std::to_string(round)};
    // The first worker stays in its handler, so its row stays.
    const std::thread::id main = std::this_thread::get_id();
    CHECK(thrown_by([&] {
            (void)t.consumer().consume(message, [&](Lease&) {
              CHECK(main == std::this_thread::get_id());
              t.let_run_out();
              std::atomic<int> runs = 0;
              std::vector<std::thread> workers;
              for (int i = 0; i < 4; ++i) {
                workers.emplace_back([&] {
                  (void)t.consumer().consume(message, [&](Lease&) {
                    ++runs;
                    std::this_thread::sleep_for(5ms);
                  });
                });
              }
              for (auto& each : workers) each.join();
              CHECK(runs == 1);
            });
          }) == "lease_lost");
  }
}

}  // namespace
}  // namespace txinbox::test
