// A lost connection empties the cache of recent keys, because a failover may have lost committed rows.

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/guard_cases.hpp"
#include "support/outcomes.hpp"
#include "support/proxy.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123"};
const ConsumerOptions remembering = {.recent_keys = {.capacity = 1000, .max_age = std::chrono::hours(1)}};

struct OneConnection {
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer{pool, "svc", remembering};

  Outcome consume(const Message& message) { return consumer.consume(message, add_effect).outcome; }
  void remove_rows() const { db.run("delete from txinbox_consumed_message"); }
};

TEST_CASE("a lost idle connection is detected before the cache answers a key" * doctest::skip(!has_server())) {
  for (const bool in_batch : {false, true}) {
    CAPTURE(in_batch);
    OneConnection t;
    CHECK(t.consume(order) == consumed);
    const long long id = connection_id(t.pool.acquire());
    t.remove_rows();
    CHECK(t.consume(order) == duplicate);
    kill_connection(id, t.db);
    if (in_batch) {
      CHECK(outcomes(t.consumer.consume_batch({&order, 1}, add_effect)) == Outcomes{consumed});
    } else {
      CHECK(t.consume(order) == consumed);
    }
    t.remove_rows();
    CHECK(t.consume(order) == duplicate);  // the key is in the cache again
  }
}

TEST_CASE("the cache is emptied if another user loses a connection of the pool" * doctest::skip(!has_server())) {
  OneConnection t;
  CHECK(t.consume(order) == consumed);
  t.remove_rows();
  {
    const auto other = t.pool.acquire();
    CHECK(t.consume(order) == duplicate);
    kill_connection(other, t.db);
  }
  CHECK(t.consume(order) == consumed);
}

/// Consumes `order` with a handler that loses a connection. Afterwards the cache must not know the key.
void check_not_cached(const EffectDatabase& db, TxConsumer& consumer, const Handler& losing, bool in_batch) {
  if (in_batch) {
    CHECK(outcomes(consumer.consume_batch({&order, 1}, losing)) == Outcomes{consumed});
  } else {
    CHECK(consumer.consume(order, losing).outcome == consumed);
  }
  db.run("delete from txinbox_consumed_message");
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
}

TEST_CASE("a key that is committed while another connection of the pool is lost is not cached" *
          doctest::skip(!has_server())) {
  for (const bool in_batch : {false, true}) {
    CAPTURE(in_batch);
    const EffectDatabase db;
    Pool pool = db.pool(2);
    TxConsumer consumer(pool, "svc", remembering);
    const Handler losing = [&](soci::session& sql, Delivery& d) {
      const auto other = pool.acquire();
      kill_connection(other, db);
      add_effect(sql, d);
    };
    check_not_cached(db, consumer, losing, in_batch);
  }
}

TEST_CASE("a key that is committed after another delivery has detected a lost connection is not cached" *
          doctest::skip(!has_server())) {
  for (const bool in_batch : {false, true}) {
    CAPTURE(in_batch);
    const EffectDatabase db;
    Pool pool = db.pool(2);
    TxConsumer consumer(pool, "svc", remembering);
    const Handler losing = [&](soci::session& sql, Delivery& d) {
      {
        const auto other = pool.acquire();
        kill_connection(other, db);
      }
      // This delivery counts the loss and empties the cache, before the batch or the message commits.
      const Message meanwhile{.business_key = "meanwhile"};
      const auto elsewhere = [&] { return consumer.consume(meanwhile, add_effect).outcome; };
      CHECK(std::async(std::launch::async, elsewhere).get() == consumed);
      add_effect(sql, d);
    };
    check_not_cached(db, consumer, losing, in_batch);
  }
}

TEST_CASE("a connection that is lost in a handler empties the cache, and then the handler's message is cached" *
          doctest::skip(!has_server())) {
  for (const bool in_batch : {false, true}) {
    CAPTURE(in_batch);
    OneConnection t;
    CHECK(t.consume(order) == consumed);
    t.remove_rows();
    const Message other{.business_key = "other"};
    const Handler killed_once = [&](soci::session& sql, Delivery& d) {
      if (d.attempt() == 1) kill_connection(sql, t.db);
      add_effect(sql, d);
    };
    if (in_batch) {
      CHECK(outcomes(t.consumer.consume_batch({&other, 1}, killed_once)) == Outcomes{consumed});
    } else {
      CHECK(t.consumer.consume(other, killed_once).outcome == consumed);
    }
    t.remove_rows();
    CHECK(t.consume(order) == consumed);
    CHECK(t.consume(other) == duplicate);
  }
}

TEST_CASE("a commit whose reply was lost empties the cache, and its message stays a duplicate" *
          doctest::skip(!has_server())) {
  for (const bool in_batch : {false, true}) {
    CAPTURE(in_batch);
    EffectDatabase db;
    Proxy proxy(db.url());
    Pool pool = open_pool(proxy.url(), {.connections = 1});
    TxConsumer consumer(pool, "svc", remembering);
    const Message early{.business_key = "early"};
    CHECK(consumer.consume(early, add_effect).outcome == consumed);
    const Handler losing = [&](soci::session& sql, Delivery& d) {
      add_effect(sql, d);
      proxy.lose_reply();
    };
    if (in_batch) {
      CHECK(outcomes(consumer.consume_batch({&order, 1}, losing)) == Outcomes{consumed});
    } else {
      CHECK(consumer.consume(order, losing).outcome == consumed);
    }
    CHECK(proxy.lost() == 1);
    CHECK(consumer.consume(order, add_effect).outcome == duplicate);
    CHECK(db.effects() == 2);
    db.run("delete from txinbox_consumed_message where business_key = 'early'");
    CHECK(consumer.consume(early, add_effect).outcome == consumed);
  }
}

TEST_CASE("a claim whose reply was lost is not cached before it is committed" * doctest::skip(!has_server())) {
  EffectDatabase db;
  Proxy proxy(db.url());
  Pool pool = open_pool(proxy.url(), {.connections = 1});
  ConsumerOptions once = remembering;
  once.retry.max_runs = 1;
  TxConsumer consumer(pool, "svc", once);
  CHECK(consumer.consume({.business_key = "warm"}, add_effect).outcome == consumed);
  proxy.lose_reply();
  CHECK_THROWS_AS((void)consumer.consume(order, add_effect), soci::soci_error);
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
  CHECK(db.effects() == 2);
}

}  // namespace
}  // namespace txinbox::test
