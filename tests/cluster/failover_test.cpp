// When a pool connects again, it reaches another node, as behind a load balancer. That node is behind: it has not yet
// applied the commits of the first node.

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "cluster/cluster.hpp"
#include "support/guard_cases.hpp"
#include "support/outcomes.hpp"
#include "support/proxy.hpp"

namespace txinbox::test {
namespace {

constexpr int first = 1;
constexpr int second = 2;

const Message order{.business_key = "order"};

/// Ends a lag after some time. Meanwhile another thread waits for its end.
std::future<void> end_soon(std::optional<Lag>& lag) {
  return std::async(std::launch::async, [&lag] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    lag.reset();
  });
}

TEST_CASE("a commit whose reply is lost is found on a node that is behind, and is not doubled there") {
  for (const bool batch : {false, true}) {
    CAPTURE(batch);
    const std::size_t last = batch ? 1 : 0;
    const ClusterDatabase db;
    Proxy proxy(db.url(first));
    Pool pool = open_pool(proxy.url(), {.connections = 1});
    TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 20}});
    std::optional<Lag> lag(std::in_place, db, second);
    std::future<void> end;
    int runs = 0;
    const Handler handler = [&](soci::session& sql, Delivery& d) {
      add_effect(sql, d);
      if (d.index() == 0 && ++runs == 2) end = end_soon(lag);
      if (runs > 1 || d.index() != last) return;
      proxy.forward_to(db.url(second));
      proxy.lose_reply();  // loses the reply to the commit, which verifies the guard in the same round trip
    };
    if (batch) {
      const auto results = consumer.consume_batch(messages_of({"order", "other"}), handler);
      CHECK(outcomes(results) == Outcomes{consumed, consumed});
    } else {
      CHECK(consumer.consume(order, handler).outcome == consumed);
    }
    CHECK(proxy.lost() == 1);
    CHECK(runs >= 2);
    CHECK(db.effects() == (batch ? 2 : 1));
    CHECK(db.claims() == db.effects());
  }
}

TEST_CASE("a torn claim is marked on a node that is behind, and is never reported as consumed") {
  for (const int max_attempts : {1, 20}) {
    CAPTURE(max_attempts);
    const ClusterDatabase db;
    Proxy proxy(db.url(first));
    Pool pool = open_pool(proxy.url(), {.connections = 1});
    TxConsumer consumer(pool, "svc", {.retry = {.max_runs = max_attempts}});
    std::optional<Lag> lag(std::in_place, db, second);
    std::future<void> end;
    try {
      const Result result = consumer.consume(order, [&](soci::session& sql, Delivery& d) {
        add_effect(sql, d);
        if (d.attempt() > 1) return;
        sql.commit();
        proxy.forward_to(db.url(second));
        end = end_soon(lag);
        proxy.lose_reply();
        add_effect(sql, d);
      });
      CHECK(result.outcome == parked);
    } catch (const soci::soci_error&) {
      CHECK(max_attempts == 1);
    }
    CHECK(db.text("select state from txinbox_consumed_message") == "torn");
    CHECK(consumer.consume(order, add_effect).outcome == parked);
    CHECK(db.effects() == 1);
  }
}

}  // namespace
}  // namespace txinbox::test
