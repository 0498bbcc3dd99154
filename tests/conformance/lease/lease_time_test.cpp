// A lease expires during a wait: for a connection, on a silent network, or before its handler begins.

#include <chrono>
#include <stop_token>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "pool/inbox_session.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "support/capabilities.hpp"
#include "support/leases.hpp"
#include "support/outcomes.hpp"
#include "support/proxy.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto very_late = 60s;  // longer than any of these tests, even on a slow machine

/// Waits until the stop token of the lease is set, at most `very_late`. Returns whether it was set.
bool stop_is_requested(const Lease& lease) {
  const auto give_up = Clock::now() + very_late;
  while (!lease.stop_token().stop_requested() && Clock::now() < give_up) std::this_thread::sleep_for(1ms);
  return Clock::now() < give_up;
}

TEST_CASE(
    "an expired lease sets its stop token, with and without a heartbeat, even if the heartbeat gets no connection" *
    doctest::test_suite("timed")) {
  const EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 1, .acquire_timeout = 2 * very_late});
  for (const auto heartbeat : {0ms, 50ms}) {
    LeaseConsumer consumer(pool, "svc", {.length = 500ms, .heartbeat = heartbeat});
    const Message message{.business_key = "k" + std::to_string(heartbeat.count())};
    const auto begin = Clock::now();
    const Result result = consumer.consume(message, [&](Lease& lease) {
      {
        const Connection held = pool.acquire();  // the heartbeat waits for this connection
        CHECK(stop_is_requested(lease));
        CHECK(lease.remaining() == 0ms);
      }
      std::this_thread::sleep_for(200ms);  // now the heartbeat could renew, but it has given up
      CHECK(lease.remaining() == 0ms);
    });
    CHECK(result.outcome == consumed);  // no other worker has taken over
    CHECK(Clock::now() - begin < very_late);
  }
}

TEST_CASE("a lease that is renewed in time does not set its stop token, and an expired lease keeps it set" *
          doctest::test_suite("timed")) {
  Leases t;
  LeaseConsumer consumer(t.pool, "svc", {.length = 3s});
  const auto handler = [](Lease& lease) {
    const auto first_end = lease.expires_at();
    while (Clock::now() < first_end + 500ms) {
      lease.renew();
      std::this_thread::sleep_for(10ms);
    }
    CHECK(!lease.stop_token().stop_requested());
    CHECK(stop_is_requested(lease));
    lease.renew();
    CHECK(lease.remaining() > 0ms);
    CHECK(lease.stop_token().stop_requested());
  };
  CHECK(consumer.consume(order, handler).outcome == consumed);
}

TEST_CASE("with a silent network the lease still expires, and the caller's time-outs still apply" *
          doctest::test_suite("timed") * doctest::skip(!has_server())) {
  const EffectDatabase db;
  Proxy proxy(db.url());
  Pool pool =
      open_pool(proxy.url(), {.connections = 2, .connect_timeout = 2s, .lock_timeout = 1s, .statement_timeout = 1s});
  LeaseConsumer consumer(pool, "svc", {.length = 2s, .heartbeat = 100ms}, {.retry = {.max_runs = 1}});
  const auto begin = Clock::now();
  const auto handler = [&](Lease& lease) {
    proxy.fall_silent();
    CHECK(stop_is_requested(lease));
  };
  CHECK(thrown_by([&] { (void)consumer.consume(order, handler); }) == "transient");
  CHECK(Clock::now() - begin < very_late);
  proxy.fall_silent(false);
}

TEST_CASE("a handler never begins under an expired lease" * doctest::test_suite("timed") *
          doctest::skip(!has_server())) {
  const EffectDatabase db;
  Proxy proxy(db.url());
  Pool pool = open_pool(proxy.url(), {.connections = 1});
  for (const bool counts : {false, true}) {
    CAPTURE(counts);
    LeaseConsumer patient(pool, "svc", {.length = 10s}, {.count_starts = counts});
    CHECK(patient.consume({.business_key = "first" + std::to_string(counts)}, nothing).outcome == consumed);
    LeaseConsumer consumer(pool, "svc", {.length = 200ms}, {.retry = {.max_runs = 1}, .count_starts = counts});
    proxy.delay(150ms);
    CHECK(thrown_by([&] { (void)consumer.consume({.business_key = "k" + std::to_string(counts)}, must_not_run); }) ==
          "lease_lost");
    proxy.delay(0ms);
  }
  // The claim is in time. The statements of `count_starts` then take longer than the lease.
  LeaseConsumer consumer(pool, "svc", {.length = 2500ms}, {.retry = {.max_runs = 1}, .count_starts = true});
  proxy.delay(500ms);
  const auto handler = [&](const Lease& lease) {
    proxy.delay(0ms);
    CHECK(lease.remaining() > 0ms);
    CHECK(!lease.stop_token().stop_requested());
  };
  const auto thrown = thrown_by([&] { (void)consumer.consume(order, handler); });
  CHECK((thrown == "nothing" || thrown == "lease_lost"));
}

TEST_CASE("a lease has its length even if summer time ends while its statement waits" * doctest::skip(!on_mysql())) {
  const TestDatabase db;
  // A time zone whose clock goes back by one hour, two seconds from now.
  const auto leap = db.number("select unix_timestamp() + 2");
  const auto id = db.number("select 900000 + connection_id()");
  const std::string number = std::to_string(id);
  const std::string name = "txinbox/" + number;
  db.run("insert into mysql.time_zone values (" + number + ", 'N')");
  db.run("insert into mysql.time_zone_name values ('" + name + "', " + number + ")");
  db.run("insert into mysql.time_zone_transition_type values (" + number + ", 0, 7200, 1, 'S'), (" + number +
         ", 1, 3600, 0, 'W')");
  db.run("insert into mysql.time_zone_transition values (" + number + ", 0, 0), (" + number + ", " +
         std::to_string(leap) + ", 1)");
  const auto off_by = [&](const std::string& zone) {
    const auto sql = db.session();
    *sql << "set time_zone = '" + zone + "'";
    const detail::InboxSession session(backend::connection_of(*sql));
    const std::string now = session->dialect().now();
    int seconds = 0;
    // The server calls the functions of the list from left to right.
    *sql << "select sleep(5), timestampdiff(second, utc_timestamp(6), " + now + ")", soci::into(seconds),
        soci::into(seconds);
    return seconds;
  };
  int in_utc = 0;
  std::thread beside([&] { in_utc = off_by("+00:00"); });
  const int in_zone = off_by(name);
  beside.join();
  for (const std::string table : {"time_zone", "time_zone_name", "time_zone_transition_type", "time_zone_transition"}) {
    db.run("delete from mysql." + table + " where time_zone_id = " + number);
  }
  for (const int seconds : {in_zone, in_utc}) CHECK((seconds >= 4 && seconds < 600));
}

}  // namespace
}  // namespace txinbox::test
