// A primary is killed, and its replica takes over. Commits that the replica had not received are lost: the claims
// together with the rows that their handlers wrote. So the handler runs again when the message is redelivered.
//
// Each suite is for one kind of replication, which tests/failover.sh starts. Its primary is killed once.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "failover/pair.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

using Keys = std::multiset<std::string>;

constexpr int some = 50;

std::string key_of(int number) { return fmt::format("key{}", number); }

/// Consumes new keys on four threads, beginning with `first`, until the server is killed. `end` returns the keys that
/// were acknowledged.
class Stream {
 public:
  Stream(const Pair& db, int first) : next_(first) {
    for (int i = 0; i < 4; ++i) workers_.emplace_back([&] { work(db); });
  }

  /// Waits until more than this number of keys are acknowledged.
  void run_until_acknowledged(std::size_t count) {
    while (acknowledged() <= count) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  Keys end() {
    for (std::thread& each : workers_) each.join();
    return acknowledged_;
  }

  int keys() const { return next_; }

 private:
  std::size_t acknowledged() {
    const std::lock_guard lock(mutex_);
    return acknowledged_.size();
  }

  void work(const Pair& db) {
    Pool pool = db.primary({.connections = 1});
    TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 1}});
    for (;;) {
      const std::string key = key_of(next_++);
      try {
        if (consumer.consume({.business_key = key}, add_effect).outcome != consumed) continue;
      } catch (const soci::soci_error&) {
        return;
      }
      const std::lock_guard lock(mutex_);
      acknowledged_.insert(key);
    }
  }

  std::atomic<int> next_;
  std::mutex mutex_;
  Keys acknowledged_;
  std::vector<std::thread> workers_;
};

Keys consume_all(TxConsumer& consumer, int first, int end, Outcome expected) {
  Keys keys;
  for (int i = first; i < end; ++i) {
    CHECK(consumer.consume({.business_key = key_of(i)}, add_effect).outcome == expected);
    keys.insert(key_of(i));
  }
  return keys;
}

/// Delivers every key to the new primary. Afterwards, each key must have taken effect there once.
void redeliver(const Pair& db, int keys) {
  Pool pool = db.replica();
  TxConsumer consumer(pool, "svc");
  Keys all;
  for (int i = 0; i < keys; ++i) {
    CHECK(action_for(consumer.consume({.business_key = key_of(i)}, add_effect)) == Action::acknowledge);
    all.insert(key_of(i));
  }
  CHECK(db.effects_on_replica() == all);
  CHECK(db.consumed_on_replica() == all);
}

/// Kills the primary while a stream of keys is consumed. Returns the acknowledged keys.
Keys lose_primary_in_stream(const Pair& db, int first, int& keys) {
  Stream stream(db, first);
  stream.run_until_acknowledged(100);
  db.fail_over();
  Keys acknowledged = stream.end();
  keys = stream.keys();
  return acknowledged;
}

long long lost_of(const Keys& acknowledged, const Keys& there) {
  return std::ranges::count_if(acknowledged, [&](const std::string& key) { return !there.contains(key); });
}

void lose_unreplicated() {
  const Pair db;
  Pool pool = db.primary();
  TxConsumer consumer(pool, "svc");
  const Keys replicated = consume_all(consumer, 0, some, consumed);
  db.wait_for_replica();
  db.part();
  consume_all(consumer, some, 2 * some, consumed);
  int keys = 0;
  const Keys acknowledged = lose_primary_in_stream(db, 2 * some, keys);
  // No claim exists without its effect, and no effect without its claim.
  CHECK(db.consumed_on_replica() == replicated);
  CHECK(db.effects_on_replica() == replicated);
  fmt::print("    {} acknowledged, {} lost with the primary\n", acknowledged.size() + 2 * some,
             lost_of(acknowledged, replicated) + some);
  redeliver(db, keys);
}

void lose_nothing_acknowledged() {
  const Pair db;
  int keys = 0;
  const Keys acknowledged = lose_primary_in_stream(db, 0, keys);
  const Keys there = db.consumed_on_replica();
  CHECK(lost_of(acknowledged, there) == 0);
  CHECK(db.effects_on_replica() == there);
  fmt::print("    {} acknowledged, {} lost with the primary, {} on the replica without an acknowledgement\n",
             acknowledged.size(), lost_of(acknowledged, there), there.size() - acknowledged.size());
  redeliver(db, keys);
}

}  // namespace

TEST_CASE("commits that an asynchronous replica has not received are lost, claims and effects together" *
          doctest::test_suite("asynchronous")) {
  lose_unreplicated();
}

TEST_CASE("no acknowledged message is lost if the primary's commits wait for the replica" *
          doctest::test_suite("synchronous")) {
  lose_nothing_acknowledged();
}

/// The query that finds a commit which waits for the replica, and the statements that end its wait.
struct Wait {
  std::string found;
  std::vector<std::string> ends;
};

Wait wait_of_this_database() {
  if (on_mysql()) {
    return {"select id from information_schema.processlist where state = 'Waiting for semi-sync ACK from slave'",
            {"kill "}};
  }
  return {"select pid from pg_stat_activity where wait_event = 'SyncRep'",
          {"select pg_cancel_backend(", "select pg_terminate_backend("}};
}

TEST_CASE("a failover loses a claim whose wait for the replica was cancelled" * doctest::test_suite("cancelled")) {
  const Pair db;
  Pool pool = db.primary({.statement_timeout = std::chrono::seconds(1)});
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume({.business_key = "before"}, add_effect).outcome == consumed);
  db.wait_for_replica();
  db.part();
  const Wait wait = wait_of_this_database();
  const std::string waiting = "select count(*) from (" + wait.found + ") waiting";
  for (const std::string& end : wait.ends) {
    CAPTURE(end);
    // The consumer does not learn that its commit is only on the primary.
    std::thread delivery([&] { CHECK(consumer.consume({.business_key = end}, add_effect).outcome == consumed); });
    while (db.number(waiting) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::this_thread::sleep_for(std::chrono::seconds(2));
    CHECK(db.number(waiting) == 1);  // the statement time-out does not end it
    db.run(end + std::to_string(db.number(wait.found)) + (on_mysql() ? "" : ")"));
    delivery.join();
    CHECK(consumer.consume({.business_key = end}, add_effect).outcome == duplicate);
  }
  db.fail_over();
  CHECK(db.consumed_on_replica() == Keys{"before"});
  CHECK(db.effects_on_replica() == Keys{"before"});
}

}  // namespace txinbox::test
