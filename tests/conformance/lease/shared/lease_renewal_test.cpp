// The handler or a heartbeat renews a lease.

#include <chrono>
#include <stop_token>
#include <thread>

#include <doctest/doctest.h>
#include <txinbox/txinbox.hpp>

#include "support/lease_subject.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a renewal extends the lease to its full length, for its holder and in the store") {
  const LeaseSubject t;
  LeaseConsumer consumer = t.consumer({.length = 5s});
  CHECK(consumer
            .consume(order,
                     [&](Lease& lease) {
                       const auto before = lease.expires_at();
                       const auto in_table = t.ends();
                       std::this_thread::sleep_for(5ms);
                       lease.renew();
                       CHECK(lease.expires_at() > before);
                       CHECK(lease.remaining() <= 5s);
                       CHECK(t.ends() > in_table);
                     })
            .outcome == consumed);
}

TEST_CASE("a heartbeat renews the lease of a handler that takes longer than the lease" * doctest::test_suite("timed")) {
  const LeaseSubject t;
  constexpr auto length = 5s;  // much longer than a heartbeat, so that none is late on a slow machine
  LeaseConsumer consumer = t.consumer({.length = length, .heartbeat = 100ms});
  CHECK(consumer
            .consume(order,
                     [&](Lease& lease) {
                       const auto fence = lease.fence();
                       std::this_thread::sleep_for(length + 500ms);
                       CHECK(lease.fence() == fence);
                       CHECK(t.consumer().consume(order, must_not_run).outcome == in_progress);
                       CHECK(!lease.stop_token().stop_requested());
                     })
            .outcome == consumed);
}

TEST_CASE("a heartbeat that finds the lease lost sets the stop token") {
  const LeaseSubject t;
  LeaseConsumer consumer = t.consumer({.length = 10s, .heartbeat = 20ms});
  const auto handler = [&](Lease& lease) {
    CHECK(t.forget("order123"));
    while (!lease.stop_token().stop_requested()) std::this_thread::sleep_for(1ms);
  };
  CHECK(thrown_by([&] { (void)consumer.consume(order, handler); }) == "lease_lost");
}

}  // namespace
}  // namespace txinbox::test
