// Renewing a lease, by the handler and by a heartbeat.

#include <chrono>
#include <stop_token>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/leases.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("renewing extends the lease to its full length, for its holder and in the table") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc", {.lease = 5s});
  CHECK(consumer
            .consume(order,
                     [&](Lease& lease) {
                       const auto before = lease.expires_at();
                       const auto in_table = t.db.text("select lease_expires_at from txinbox_consumed_message");
                       std::this_thread::sleep_for(5ms);
                       lease.renew();
                       CHECK(lease.expires_at() > before);
                       CHECK(lease.remaining() <= 5s);
                       CHECK(t.db.text("select lease_expires_at from txinbox_consumed_message") > in_table);
                     })
            .outcome == consumed);
}

TEST_CASE("a heartbeat keeps the lease of a handler that takes longer, and stops with it") {
  Leases t;
  constexpr auto length = 5s;  // so much longer than a heartbeat that none comes too late, however slow the machine is
  LeaseConsumer consumer(t.pool, "svc", {.lease = length, .heartbeat = 100ms});
  CHECK(consumer
            .consume(order,
                     [&](Lease& lease) {
                       const auto fence = lease.fence();
                       std::this_thread::sleep_for(length + 500ms);
                       CHECK(lease.fence() == fence);
                       CHECK(LeaseConsumer(t.pool, "svc").consume(order, must_not_run).outcome == in_progress);
                       CHECK(!lease.stop_token().stop_requested());
                     })
            .outcome == consumed);
}

TEST_CASE("a heartbeat that finds the lease lost tells the handler") {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc", {.lease = 10s, .heartbeat = 20ms});
  const auto handler = [&](Lease& lease) {
    CHECK(forget(*t.db.session(), "svc", "order123"));
    while (!lease.stop_token().stop_requested()) std::this_thread::sleep_for(1ms);
  };
  CHECK(thrown_by([&] { (void)consumer.consume(order, handler); }) == "lease_lost");
}

}  // namespace
}  // namespace txinbox::test
