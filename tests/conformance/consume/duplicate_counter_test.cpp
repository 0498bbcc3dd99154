// The counts of duplicates that consumers write to the table.

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/inspect.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/sql_time.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

constexpr long long hour_in_ms = 3'600'000;

/// A consumer that a test can destroy, and its row in the table of consumers.
struct Ledger {
  EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 2, .acquire_timeout = 1h});
  std::optional<TxConsumer> consumer = TxConsumer(pool, "svc");

  Outcome consume(const std::string& key) { return consumer->consume({.business_key = key}, add_effect).outcome; }

  /// Consumes a message, makes its row older by `age`, and consumes a duplicate.
  void catch_duplicate(const std::string& key, std::chrono::hours age) {
    REQUIRE(consume(key) == consumed);
    make_older(db, "business_key = '" + key + "'", age);
    REQUIRE(consume(key) == duplicate);
  }

  long long rows() const { return db.number("select count(*) from txinbox_consumer"); }
  long long duplicates() const { return db.number("select duplicates from txinbox_consumer where consumer = 'svc'"); }
  long long oldest() const { return db.number("select oldest_duplicate from txinbox_consumer where consumer = 'svc'"); }
  std::string oldest_at() const { return db.text("select oldest_duplicate_at from txinbox_consumer"); }
};

TEST_CASE("a duplicate whose original is much older than all before is written immediately") {
  Ledger t;
  t.catch_duplicate("k", 3h);
  CHECK(t.duplicates() == 1);
  CHECK(t.oldest() >= 3 * hour_in_ms - 1000);  // SQLite computes days in a double
  CHECK(t.oldest() < 4 * hour_in_ms);
  CHECK_FALSE(t.oldest_at().empty());
}

TEST_CASE("the destructor of a consumer writes the counts of duplicates that are not written yet") {
  Ledger t;
  CHECK(t.consume("k") == consumed);
  for (int i = 0; i < 5; ++i) CHECK(t.consume("k") == duplicate);
  t.consumer.reset();
  CHECK(t.duplicates() == 5);
  CHECK(t.db.number("select count(*) from txinbox_consumer where oldest_duplicate < 3600000") == 1);
}

TEST_CASE("without duplicates no count is written") {
  Ledger t;
  CHECK(t.consume("k") == consumed);
  t.consumer.reset();
  CHECK(t.rows() == 0);
}

TEST_CASE("consumers with one name add their duplicates, and the greatest age keeps its time") {
  Ledger t;
  t.catch_duplicate("a", 5h);
  const std::string at = t.oldest_at();
  t.consumer.emplace(t.pool, "svc");
  t.catch_duplicate("b", 3h);
  CHECK(t.duplicates() == 2);
  CHECK(t.oldest() >= 5 * hour_in_ms - 1000);
  CHECK(t.oldest_at() == at);
  t.consumer.emplace(t.pool, "svc");
  t.catch_duplicate("c", 7h);
  CHECK(t.duplicates() == 3);
  CHECK(t.oldest() >= 7 * hour_in_ms - 1000);
  CHECK(t.oldest_at() != at);
}

TEST_CASE("a write of duplicates keeps the values that a purge has written") {
  Ledger t;
  t.db.run("insert into txinbox_consumer (consumer, retention, purged) values ('svc', 60, 7)");
  t.catch_duplicate("k", 3h);
  CHECK(t.duplicates() == 1);
  CHECK(t.oldest() >= 3 * hour_in_ms - 1000);  // SQLite computes days in a double
  CHECK(t.db.number("select retention + purged from txinbox_consumer") == 67);
}

TEST_CASE("a consumer's name that needs quoting has its own row") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  const std::string name = "it's :a \"svc\" \\ 鍵";
  {
    TxConsumer consumer(pool, name);
    for (int i = 0; i < 3; ++i) (void)consumer.consume({.business_key = "k"}, add_effect);
  }
  const InboxStatus found = inbox_status(*db.session());
  REQUIRE(found.consumers.size() == 1);
  CHECK(found.consumers.front().consumer == name);
  CHECK(found.consumers.front().duplicates == 2);
}

TEST_CASE("duplicates of a batch are counted, and so are copies within the batch") {
  Ledger t;
  CHECK(t.consume("old") == consumed);
  make_older(t.db, "business_key = 'old'", 3h);
  const auto results = t.consumer->consume_batch(messages_of({"old", "new", "new"}), add_effect);
  CHECK(outcomes(results) == Outcomes{duplicate, consumed, duplicate});
  CHECK(t.duplicates() == 2);
  CHECK(t.oldest() >= 3 * hour_in_ms - 1000);  // SQLite computes days in a double
}

TEST_CASE("on a caller's session the count of an old duplicate is written, and the destructor writes no counts") {
  EffectDatabase db;
  const auto sql = db.session();
  std::optional<TxConsumer> consumer(TxConsumer(*sql, "svc"));
  (void)consumer->consume({.business_key = "k"}, add_effect);
  make_older(db, "business_key = 'k'", 3h);
  CHECK(consumer->consume({.business_key = "k"}, add_effect).outcome == duplicate);
  CHECK(db.number("select duplicates from txinbox_consumer") == 1);
  CHECK(consumer->consume({.business_key = "k"}, add_effect).outcome == duplicate);
  sql->begin();  // the destructor must not affect this transaction
  *sql << "insert into effect values ('mine')";
  consumer.reset();
  sql->rollback();
  CHECK(db.effects_of("mine") == 0);
  CHECK(db.number("select duplicates from txinbox_consumer") == 1);
}

TEST_CASE("if a count of duplicates cannot be written, the delivery succeeds, and the count is written later") {
  Ledger t;
  CHECK(t.consume("k") == consumed);
  t.db.run("alter table txinbox_consumer rename to elsewhere");
  make_older(t.db, "business_key = 'k'", 3h);
  CHECK(t.consume("k") == duplicate);
  CHECK(t.consume("other") == consumed);
  CHECK(t.consume("k") == duplicate);
  t.db.run("alter table elsewhere rename to txinbox_consumer");
  CHECK(t.rows() == 0);
  t.consumer.reset();  // the destructor writes the count
  CHECK(t.duplicates() == 2);
  CHECK(t.oldest() >= 3 * hour_in_ms - 1000);  // SQLite computes days in a double
}

TEST_CASE("the destructor of a consumer does not wait for a connection") {
  Ledger t;
  CHECK(t.consume("k") == consumed);
  CHECK(t.consume("k") == duplicate);
  {
    const auto first = t.pool.acquire();
    const auto second = t.pool.acquire();
    t.consumer.reset();  // a wait would take one hour, the acquire_timeout
  }
  CHECK(t.rows() == 0);
}

TEST_CASE("a LeaseConsumer's duplicates are counted, too") {
  EffectDatabase db;
  Pool pool = db.pool(2);
  LeaseConsumer consumer(pool, "svc");
  const auto nothing = [](Lease&) {};
  CHECK(consumer.consume({.business_key = "k"}, nothing).outcome == consumed);
  make_older(db, "business_key = 'k'", 3h);
  CHECK(consumer.consume({.business_key = "k"}, nothing).outcome == duplicate);
  CHECK(db.number("select duplicates from txinbox_consumer where oldest_duplicate > 3600000") == 1);
}

TEST_CASE("duplicates that the cache of recent keys answered are counted, without an age") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  {
    TxConsumer consumer(pool, "svc", {.recent_keys = {.capacity = 10, .max_age = 1h}});
    for (int i = 0; i < 4; ++i) (void)consumer.consume({.business_key = "k"}, add_effect);
  }
  CHECK(db.number("select duplicates from txinbox_consumer where oldest_duplicate is null") == 3);
}

TEST_CASE("each duplicate of many threads is counted exactly once") {
  Ledger t;
  constexpr int threads = 4;
  constexpr int keys = 25;
  for (int i = 0; i < keys; ++i) {
    CHECK(t.consume(std::to_string(i)) == consumed);
    make_older(t.db, "business_key = '" + std::to_string(i) + "'", std::chrono::hours(1 + i));
  }
  {
    std::vector<std::jthread> all;
    for (int n = 0; n < threads; ++n) {
      all.emplace_back([&] {
        for (int i = 0; i < keys; ++i) (void)t.consume(std::to_string(i));
      });
    }
  }
  t.consumer.reset();
  CHECK(t.duplicates() == threads * keys);
  CHECK(t.oldest() >= keys * hour_in_ms - 1000);  // SQLite computes days in a double
}

}  // namespace
}  // namespace txinbox::test
