// Deliveries that wait for the worker that holds the lease.

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <thread>

#include <doctest/doctest.h>
#include <txinbox/txinbox.hpp>

#include "support/lease_subject.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a delivery can wait for the result of another worker") {
  const LeaseSubject t;
  LeaseConsumer consumer = t.consumer();
  LeaseConsumer patient = t.consumer({}, {.claim_wait = 1h});
  std::atomic<bool> running = false;
  std::thread first([&] {
    CHECK(consumer
              .consume(order,
                       [&](Lease& lease) {
                         running = true;
                         std::this_thread::sleep_for(200ms);
                         lease.delivery().store("done");
                       })
              .outcome == consumed);
  });
  while (!running) std::this_thread::sleep_for(1ms);
  const Result result = patient.consume(order, must_not_run);
  first.join();
  CHECK(result.outcome == duplicate);
  CHECK(result.stored == "done");
}

TEST_CASE("a waiting delivery runs the handler if the other worker fails, and stops waiting at the stop token") {
  const LeaseSubject t;
  LeaseConsumer consumer = t.consumer();
  std::atomic<bool> running = false;
  std::atomic<bool> end = false;
  std::thread first([&] {
    try {
      (void)consumer.consume(order, [&](Lease&) {
        running = true;
        while (!end) std::this_thread::sleep_for(1ms);
        throw std::runtime_error("gave up");
      });
    } catch (const std::runtime_error&) {
    }
  });
  while (!running) std::this_thread::sleep_for(1ms);
  SUBCASE("the other worker fails") {
    std::thread ending([&] {
      std::this_thread::sleep_for(50ms);
      end = true;
    });
    CHECK(t.consumer({}, {.claim_wait = 1h}).consume(order, nothing).outcome == consumed);
    ending.join();
  }
  SUBCASE("the stop token is set") {
    std::stop_source stop;
    std::thread stopping([&] {
      std::this_thread::sleep_for(50ms);
      stop.request_stop();
    });
    LeaseConsumer waiting = t.consumer({}, {.claim_wait = 1h, .stop = stop.get_token()});
    CHECK(waiting.consume(order, must_not_run).outcome == in_progress);
    stopping.join();
  }
  end = true;
  first.join();
}

}  // namespace
}  // namespace txinbox::test
