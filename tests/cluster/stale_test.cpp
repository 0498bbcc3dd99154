// A node that is behind does not see commits that it has not applied yet. Nevertheless no effect occurs twice.

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/inspect.hpp>
#include <txinbox/txinbox.hpp>

#include "cluster/cluster.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

using std::chrono::milliseconds;

constexpr int ahead = 1;
constexpr int behind = 2;

const Message key{.business_key = "key"};

TEST_CASE("a node that is behind does not consume a key again, also if it reads the key before it inserts it") {
  const ClusterDatabase db;
  Pool on_ahead = db.pool(ahead);
  Pool on_behind = db.pool(behind);
  TxConsumer consumer(on_behind, "svc", {.retry = {.max_runs = 20}});
  for (int i = 0; i < 5; ++i) (void)consumer.consume({.business_key = "old"}, add_effect);
  std::optional<Lag> lag(std::in_place, db, behind);
  CHECK(TxConsumer(on_ahead, "svc").consume(key, add_effect).outcome == consumed);
  auto answer = std::async(std::launch::async, [&] { return consumer.consume(key, add_effect).outcome; });
  CHECK(answer.wait_for(milliseconds(300)) == std::future_status::timeout);
  lag.reset();
  CHECK(answer.get() == duplicate);
  CHECK(db.effects_of("key") == 1);
}

/// A server without a binary log shows a row before the row is on the disk. So the answer already_consumed waits for a
/// write, and this write waits until the node has applied earlier commits.
TEST_CASE("a key that another node has forgotten is redelivered until the node has applied the deletion") {
  const ClusterDatabase db;
  Pool on_ahead = db.pool(ahead);
  Pool on_behind = db.pool(behind, {.connections = 1, .statement_timeout = std::chrono::seconds(1)});
  TxConsumer consumer(on_behind, "svc", {.retry = {.max_runs = 1}});
  CHECK(consumer.consume(key, add_effect).outcome == consumed);
  {
    const Lag lag(db, behind);
    auto connection = on_ahead.acquire();
    CHECK(forget(connection.session(), "svc", "key"));
    Action action = Action::acknowledge;
    try {
      action = action_for(consumer.consume(key, add_effect));
    } catch (...) {
      CHECK(is_transient(std::current_exception()));
      action = action_for(std::current_exception());
    }
    CHECK(action == Action::redeliver);
  }
  CHECK(db.number(behind, "select count(*) from txinbox_consumed_message") == 0);
  CHECK(TxConsumer(on_behind, "svc").consume(key, add_effect).outcome == consumed);
  CHECK(db.effects() == 2);
}

TEST_CASE("a commit of another node is found after the node has applied it, or waits for it") {
  const ClusterDatabase db;
  Pool on_ahead = db.pool(ahead);
  Pool on_behind = db.pool(behind, {.connections = 1});
  auto connection = on_behind.acquire();
  std::optional<Lag> lag(std::in_place, db, behind);
  CHECK(TxConsumer(on_ahead, "svc").consume(key, add_effect).outcome == consumed);
  CHECK(!find_message(connection.session(), "svc", "key"));
  CHECK(inbox_status(connection.session()).rows == 0);
  connection.session() << "set wsrep_sync_wait = 1";
  auto found =
      std::async(std::launch::async, [&] { return find_message(connection.session(), "svc", "key").has_value(); });
  CHECK(found.wait_for(milliseconds(300)) == std::future_status::timeout);
  lag.reset();
  CHECK(found.get());
  CHECK(inbox_status(connection.session()).rows == 1);
}

}  // namespace
}  // namespace txinbox::test
