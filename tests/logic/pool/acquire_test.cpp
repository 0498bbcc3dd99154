// A pool's options, and how long a thread waits for a connection.

#include <chrono>
#include <memory>
#include <stop_token>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using std::chrono::milliseconds;

const Message order{.business_key = "order123"};

TEST_CASE("acquire waits no longer than its time-out") {
  EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 1, .acquire_timeout = milliseconds(20)});
  const auto held = pool.acquire();
  CHECK(thrown_by([&] { auto second = pool.acquire(); }) == "acquire_timeout");
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 1}});
  CHECK(thrown_by([&] { (void)consumer.consume(order, add_effect); }) == "acquire_timeout");
}

TEST_CASE("a stop token ends the wait for a connection") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  const auto held = pool.acquire();
  std::stop_source stop;
  std::thread stopper([&] { stop.request_stop(); });
  CHECK(thrown_by([&] { auto second = pool.acquire(stop.get_token()); }) == "stopped");
  stopper.join();
}

TEST_CASE("a waiting thread gets a connection that another thread gives back") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  auto held = std::make_unique<Connection>(pool.acquire());
  std::thread releaser([&] {
    std::this_thread::sleep_for(milliseconds(20));
    held.reset();
  });
  long long one = 0;
  auto second = pool.acquire();
  second.session() << "select 1", soci::into(one);
  CHECK(one == 1);
  releaser.join();
}

TEST_CASE("a connection can be used as its session") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  const Connection connection = pool.acquire();
  CHECK(&*connection == &connection.session());
  connection->begin();
  *connection << "insert into effect values ('a')";
  connection->commit();
  CHECK(db.effects() == 1);
}

TEST_CASE("a connection may outlive its pool object") {
  EffectDatabase db;
  auto pool = std::make_unique<Pool>(db.pool(1));
  auto connection = pool->acquire();
  pool.reset();
  connection.session() << "insert into effect values ('x')";
  CHECK(db.effects() == 1);
}

TEST_CASE("invalid options are refused") {
  const std::string url = "sqlite::memory:";
  for (const PoolOptions& options :
       {PoolOptions{.connections = 0}, PoolOptions{.connections = 1, .acquire_timeout = milliseconds(0)},
        PoolOptions{.connections = 1, .lock_timeout = milliseconds(-1)},
        PoolOptions{.connections = 1, .statement_timeout = std::chrono::hours(24 * 365)}}) {
    CHECK(thrown_by([&] { auto pool = open_pool(url, options); }) == "invalid_argument");
  }
  Pool pool = open_pool(url, {.connections = 1});
  for (const RetryPolicy& retry : {RetryPolicy{.max_runs = 0}, RetryPolicy{.initial_backoff = milliseconds(-1)},
                                   RetryPolicy{.initial_backoff = milliseconds(10), .max_backoff = milliseconds(1)},
                                   RetryPolicy{.max_elapsed = milliseconds(-1)}}) {
    CHECK(thrown_by([&] { TxConsumer(pool, "svc", {.retry = retry}); }) == "invalid_argument");
  }
}

}  // namespace
}  // namespace txinbox::test
