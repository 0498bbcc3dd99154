// claim_wait: how long a delivery waits for a running delivery of its key.

#include <chrono>
#include <future>
#include <latch>
#include <stop_token>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/crashing_handlers.hpp"
#include "support/effects.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

const Message order{.business_key = "order123", .content = "10 EUR"};

/// A delivery of `order` whose handler runs until the test calls `end`.
class RunningDelivery {
 public:
  explicit RunningDelivery(TxConsumer& consumer)
      : thread_([&] {
          try {
            result_.set_value(consumer.consume(order, [&](soci::session& sql, Delivery& delivery) {
              add_effect(sql, delivery);
              begun_.count_down();
              if (!end_.get_future().get()) throw std::runtime_error("the handler fails");
              delivery.store("receipt");
            }));
          } catch (...) {
            result_.set_exception(std::current_exception());
          }
        }) {
    begun_.wait();
  }

  Result end(bool succeeds = true) {
    end_.set_value(succeeds);
    return result_.get_future().get();
  }

 private:
  std::latch begun_{1};
  std::promise<bool> end_;
  std::promise<Result> result_;
  std::jthread thread_;
};

TEST_CASE("claim_wait of zero: a copy in the same process is in_progress, and holds no connection") {
  const EffectDatabase db;
  Pool pool = db.pool({.connections = 1, .acquire_timeout = 1ms});
  TxConsumer consumer(pool, "svc", {.claim_wait = 0ms});
  RunningDelivery first(consumer);
  for (int i = 0; i < 3; ++i) {
    const Result copy = consumer.consume(order, add_effect);
    CHECK(copy.outcome == Outcome::in_progress);
    CHECK(action_for(copy) == Action::redeliver);
    CHECK(copy.retry_after == 0ms);
  }
  CHECK(first.end().outcome == Outcome::consumed);
  const Result later = consumer.consume(order, add_effect);
  CHECK(later.outcome == Outcome::already_consumed);
  CHECK(later.stored == "receipt");
  CHECK(db.effects() == 1);
}

TEST_CASE("the longest claim_wait does not end before the other delivery") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc", {.claim_wait = std::chrono::milliseconds::max()});
  RunningDelivery first(consumer);
  auto copy = std::async(std::launch::async, [&] { return consumer.consume(order, add_effect); });
  CHECK(copy.wait_for(20ms) == std::future_status::timeout);
  CHECK(first.end().outcome == Outcome::consumed);
  CHECK(copy.get().outcome == Outcome::already_consumed);
}

TEST_CASE("claim_wait of zero: a copy of another consumer object is in_progress, and other keys are not" *
          doctest::skip(one_writer())) {
  const EffectDatabase db;
  // For the server, a second pool is like another process.
  Pool pool = db.pool(2);
  Pool other_pool = db.pool(2);
  TxConsumer consumer(pool, "svc", {.claim_wait = 0ms});
  TxConsumer other(other_pool, "svc", {.claim_wait = 0ms});
  RunningDelivery first(consumer);
  for (int i = 0; i < 5; ++i) {
    CHECK(other.consume(order, add_effect).outcome == Outcome::in_progress);
    const std::string key = "another" + std::to_string(i);
    CHECK(other.consume({.business_key = key}, add_effect).outcome == Outcome::consumed);
    CHECK(other.consume({.business_key = key}, add_effect).outcome == Outcome::already_consumed);
  }
  CHECK(first.end().outcome == Outcome::consumed);
  CHECK(other.consume(order, add_effect).outcome == Outcome::already_consumed);
  CHECK(other.consume({.business_key = "order123", .content = "11 EUR"}, add_effect).outcome == Outcome::conflict);
  CHECK(db.effects() == 6);
}

TEST_CASE("claim_wait of zero with count_starts: a copy of another consumer object is in_progress" *
          doctest::skip(one_writer())) {
  const EffectDatabase db;
  Pool pool = db.pool({.connections = 4, .lock_timeout = 1s});
  Pool other_pool = db.pool({.connections = 4, .lock_timeout = 1s});
  TxConsumer consumer(pool, "svc", {.claim_wait = 0ms, .max_attempts = 3, .count_starts = true});
  TxConsumer other(other_pool, "svc", {.claim_wait = 0ms, .max_attempts = 3, .count_starts = true});
  RunningDelivery first(consumer);
  // The marker names another process, so the next delivery tries the claim to find out whether that process still runs
  // the message. If the claim waited, it would end with a lock time-out.
  leave_exclusive_marker(db);
  CHECK(other.consume(order, add_effect).outcome == Outcome::in_progress);
  CHECK(first.end().outcome == Outcome::consumed);
  CHECK(other.consume(order, add_effect).outcome == Outcome::already_consumed);
  CHECK(db.effects() == 1);
}

TEST_CASE("claim_wait of an hour: a copy waits for the first delivery, and gets its result") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  Pool other_pool = db.pool(2);
  TxConsumer consumer(pool, "svc", {.claim_wait = 1h});
  TxConsumer other(other_pool, "svc", {.claim_wait = 1h});
  RunningDelivery first(consumer);
  auto same = std::async(std::launch::async, [&] { return consumer.consume(order, add_effect); });
  auto another = std::async(std::launch::async, [&] { return other.consume(order, add_effect); });
  CHECK(same.wait_for(50ms) == std::future_status::timeout);
  CHECK(another.wait_for(50ms) == std::future_status::timeout);
  CHECK(first.end().outcome == Outcome::consumed);
  CHECK(same.get().stored == "receipt");
  CHECK(another.get().stored == "receipt");
  CHECK(db.effects() == 1);
}

TEST_CASE("claim_wait of an hour: if the first delivery fails, one of the waiting deliveries runs") {
  const EffectDatabase db;
  Pool pool = db.pool(4);
  Pool other_pool = db.pool(2);
  TxConsumer consumer(pool, "svc", {.claim_wait = 1h});
  TxConsumer other(other_pool, "svc", {.claim_wait = 1h});
  RunningDelivery first(consumer);
  auto same = std::async(std::launch::async, [&] { return consumer.consume(order, add_effect).outcome; });
  auto another = std::async(std::launch::async, [&] { return other.consume(order, add_effect).outcome; });
  CHECK(thrown_by([&] { (void)first.end(false); }) != "");
  const int consumed = (same.get() == Outcome::consumed ? 1 : 0) + (another.get() == Outcome::consumed ? 1 : 0);
  CHECK(consumed == 1);
  CHECK(db.effects() == 1);
}

TEST_CASE("claim_wait does not shorten the lock time-out of the handler's statements" * doctest::skip(one_writer())) {
  const EffectDatabase db;
  Pool pool = db.pool({.connections = 2, .lock_timeout = 60s});
  db.run("create table t_stock (item int primary key, left_over int)");
  db.run("insert into t_stock values (1, 10)");
  TxConsumer consumer(pool, "svc", {.claim_wait = 0ms});
  const auto holder = db.session();
  holder->begin();
  *holder << "update t_stock set left_over = 9 where item = 1";
  auto waiting = std::async(std::launch::async, [&] {
    return consumer
        .consume(order,
                 [](soci::session& sql) { sql << "update t_stock set left_over = left_over - 1 where item = 1"; })
        .outcome;
  });
  CHECK(waiting.wait_for(1500ms) == std::future_status::timeout);
  holder->commit();
  CHECK(waiting.get() == Outcome::consumed);
  CHECK(db.number("select left_over from t_stock where item = 1") == 8);
}

TEST_CASE("claim_wait ends when the stop token is set") {
  const EffectDatabase db;
  Pool pool = db.pool(3);
  std::stop_source stop;
  TxConsumer consumer(pool, "svc");
  TxConsumer waits(pool, "svc", {.claim_wait = 1h, .stop = stop.get_token()});
  RunningDelivery first(waits);
  auto copy = std::async(std::launch::async, [&]() -> std::string {
    try {
      return std::string(to_string(waits.consume(order, add_effect).outcome));
    } catch (const Error& error) {
      return std::string(to_string(error.code()));
    }
  });
  CHECK(copy.wait_for(50ms) == std::future_status::timeout);
  stop.request_stop();
  const std::string end = copy.get();
  CHECK((end == "in_progress" || end == "stopped"));  // stopped: on a busy machine, the thread had not begun to wait
  CHECK(first.end().outcome == Outcome::consumed);
}

TEST_CASE("claim_wait also applies to a lease of a LeaseConsumer") {
  const EffectDatabase db;
  Pool pool = db.pool(4);
  LeaseConsumer leases(pool, "svc");
  TxConsumer impatient(pool, "svc", {.claim_wait = 0ms});
  TxConsumer patient(pool, "svc", {.claim_wait = 1h});
  std::future<Outcome> waiting;
  (void)leases.consume(order, [&](Lease&) {
    const Result copy = impatient.consume(order, add_effect);
    CHECK(copy.outcome == Outcome::in_progress);
    CHECK(copy.retry_after > 0ms);
    waiting = std::async(std::launch::async, [&] { return patient.consume(order, add_effect).outcome; });
    CHECK(waiting.wait_for(50ms) == std::future_status::timeout);
  });
  CHECK(waiting.get() == Outcome::already_consumed);
  CHECK(db.effects() == 0);
}

TEST_CASE("a negative claim_wait is refused") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  CHECK(thrown_by([&] { TxConsumer(pool, "svc", {.claim_wait = -1ms}); }) == "invalid_argument");
}

}  // namespace
}  // namespace txinbox::test
