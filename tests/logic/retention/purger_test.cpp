// Purger: purges in the background.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/eventually.hpp"
#include "support/old_rows.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

PurgerOptions often(std::function<void(const Event&)> observer = {}) {
  return {.interval = 20ms, .purge = {.listeners = observer ? Listeners{on_event(std::move(observer))} : Listeners{}}};
}

TEST_CASE("a purger removes old rows at each interval") {
  const OldRows db;
  Pool pool = db.pool(1);
  const Purger purger(pool, 24h, often());
  for (int i = 0; i < 3; ++i) {
    db.add("svc", 10, 25h);
    db.add("svc", 1, 1h);
    CHECK(eventually([&] { return db.claims_older_than(24h) == 0; }));
  }
  CHECK(db.claims() == 3);
}

TEST_CASE("a purger removes failures and conflicts only if the options set their ages") {
  const OldRows db;
  const auto failed = [&] { return db.number("select count(*) from txinbox_failed_message"); };
  const auto conflicts = [&] { return db.number("select count(*) from txinbox_conflicting_message"); };
  db.add_failed("svc", 3, 25h);
  db.add_conflicts("svc", 3, 25h);
  Pool pool = db.pool(1);
  {
    std::atomic<int> purges = 0;
    const Purger purger(pool, 24h, often([&](const Event&) { ++purges; }));
    db.add("svc", 1, 25h);
    REQUIRE(eventually([&] { return purges == 1; }));
    db.add("svc", 1, 25h);  // its event shows that the first round has ended
    REQUIRE(eventually([&] { return purges == 2; }));
    CHECK(failed() == 3);
    CHECK(conflicts() == 3);
  }
  const Purger purger(pool, 24h, {.interval = 20ms, .failed_older_than = 24h, .conflicts_older_than = 24h});
  CHECK(eventually([&] { return failed() == 0 && conflicts() == 0; }));
}

TEST_CASE("the destructor of a purger does not wait for the interval, and the stop token ends the purger") {
  const OldRows db;
  Pool pool = db.pool(1);
  const auto begin = std::chrono::steady_clock::now();
  { const Purger purger(pool, 24h, {.interval = 24h}); }
  std::stop_source stop;
  const Purger purger(pool, 24h, {.interval = 20ms, .purge = {.stop = stop.get_token()}});
  stop.request_stop();
  // The purger ends after its current batch. Rows that are added then stay for longer than its interval.
  CHECK(eventually([&] {
    const auto left = db.claims();
    db.add("svc", 2, 25h);
    std::this_thread::sleep_for(200ms);
    return db.claims() == left + 2;
  }));
  CHECK(std::chrono::steady_clock::now() - begin < 1h);
}

TEST_CASE("while a purger pauses, consumers can use the pool's only connection") {
  const OldRows db;
  db.add("old", 200, 25h);
  Pool pool = open_pool(db.url(), {.connections = 1, .acquire_timeout = 5s});
  std::atomic<int> batches = 0;
  PurgerOptions options = often([&](const Event&) { ++batches; });
  options.purge.batch_size = 1;
  options.purge.duty = 1e-9;  // the pause after the first batch is longer than this test
  const Purger purger(pool, 24h, options);
  REQUIRE(eventually([&] { return batches == 1; }));
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume({.business_key = "1"}, add_effect).outcome == Outcome::consumed);
  CHECK(batches == 1);
}

TEST_CASE("a purger reports a purge that fails, and tries again") {
  const OldRows db;
  db.add("svc", 3, 25h);
  db.run("alter table txinbox_consumer rename to txinbox_elsewhere");
  Pool pool = db.pool(1);
  std::atomic<int> failures = 0;
  std::atomic<bool> told_well = true;
  const Purger purger(pool, 24h, often([&](const Event& event) {
                        if (event.type != EventType::failed) return;
                        if (!event.error || event.error_class.empty()) told_well = false;
                        ++failures;
                        throw 1;  // the purger ignores this
                      }));
  CHECK(eventually([&] { return failures >= 2; }));
  CHECK(told_well);
  CHECK(db.claims() == 3);
  db.run("alter table txinbox_elsewhere rename to txinbox_consumer");
  CHECK(eventually([&] { return db.claims() == 0; }));
}

TEST_CASE("a purger outlives its pool object") {
  const OldRows db;
  auto pool = std::make_unique<Pool>(db.pool(1));
  const Purger purger(*pool, 24h, often());
  pool.reset();
  db.add("svc", 3, 25h);
  CHECK(eventually([&] { return db.claims() == 0; }));
}

TEST_CASE("invalid options of a purger are refused") {
  const OldRows db;
  Pool pool = db.pool(1);
  const auto thrown = [&](std::chrono::seconds older_than, const PurgerOptions& options) {
    return thrown_by([&] { const Purger purger(pool, older_than, options); });
  };
  CHECK(thrown(0s, {}) == "invalid_argument");
  CHECK(thrown(24h, {.interval = 0ms}) == "invalid_argument");
  CHECK(thrown(24h, {.failed_older_than = -1s}) == "invalid_argument");
  CHECK(thrown(24h, {.conflicts_older_than = -1s}) == "invalid_argument");
  CHECK(thrown(24h, {.purge = {.batch_size = 0}}) == "invalid_argument");
}

}  // namespace
}  // namespace txinbox::test
