// A handler that commits its batch's transaction. PostgreSQL and a pool on SQLite refuse this commit. Elsewhere it also
// commits the claims of messages whose handlers have not started. The library deletes these claims. Without the right
// to DELETE they are parked.

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/guard_cases.hpp"
#include "support/late_commit.hpp"
#include "support/outcomes.hpp"
#include "support/test_user.hpp"

namespace txinbox::test {
namespace {

/// Effect by effect, until "tears" commits them, the claims of the whole batch, and fails.
void tear(soci::session& sql, Delivery& d) {
  add_effect(sql, d);
  if (d.message().business_key != "tears") return;
  sql.commit();
  throw std::runtime_error("thrown after the commit");
}

const auto batch = messages_of({"d", "a", "tears", "e", "b"});

std::string keys_in_state(const TestDatabase& db, const std::string& state) {
  const std::string list = on_mysql()     ? "group_concat(business_key order by business_key separator ' ')"
                           : on_sqlite3() ? "group_concat(business_key, ' ')"
                                          : "string_agg(business_key, ' ' order by business_key)";
  return db.text("select " + list + " from (select business_key from txinbox_consumed_message where state = '" + state +
                 "' order by business_key) x");
}

/// What can commit a batch's claims: a pool's connection to MariaDB or MySQL, or a session on SQLite, whose pools
/// refuse.
struct Torn {
  EffectDatabase db;
  Pool pool = db.pool(1);
  std::unique_ptr<soci::session> sql = db.session();
  std::vector<std::string> heard;
  TxConsumerOptions options = {.observer = [this](const Event& e) {
    heard.push_back(std::string(to_string(e.type)) + " " + std::string(e.business_key));
  }};
  TxConsumer consumer = on_sqlite3() ? TxConsumer(*sql, "svc", options) : TxConsumer(pool, "svc", options);
};

TEST_CASE("with skip, messages behind the handler that committed lose their claims and are consumed") {
  if (on_postgresql()) return;
  Torn t;
  CHECK(outcomes(t.consumer.consume_batch(batch, tear, OnFailure::skip)) ==
        Outcomes{failed, failed, failed, consumed, consumed});
  CHECK(keys_in_state(t.db, "torn") == "a d tears");
  CHECK(keys_in_state(t.db, "consumed") == "b e");
  CHECK(t.db.effects() == 5);  // those of the torn ones were committed by the handler
  CHECK(outcomes(t.consumer.consume_batch(batch, add_effect, OnFailure::skip)) ==
        Outcomes{parked, parked, parked, duplicate, duplicate});
  CHECK(t.db.effects() == 5);
}

TEST_CASE("with stop, messages behind the handler that committed are not run and leave no claim") {
  if (on_postgresql()) return;
  Torn t;
  const auto results = t.consumer.consume_batch(batch, tear);
  CHECK(outcomes(results) == Outcomes{failed, not_run, not_run, not_run, not_run});
  CHECK(code_of(results[0].error) == ErrorCode::transaction_lost);
  CHECK(keys_in_state(t.db, "torn") == "a d tears");
  CHECK(t.db.claims() == 3);
  CHECK(outcomes(t.consumer.consume_batch(batch, add_effect)) == Outcomes{parked, parked, parked, consumed, consumed});
  CHECK(t.db.effects() == 5);
}

TEST_CASE("the observer hears of each claim that was torn by a batch") {
  if (on_postgresql()) return;
  Torn t;
  (void)t.consumer.consume_batch(batch, tear, OnFailure::skip);
  CHECK(t.heard == std::vector<std::string>{"torn a", "torn d", "torn tears", "failed d", "failed a", "failed tears",
                                            "consumed e", "consumed b"});
}

TEST_CASE("with savepoints, messages that were released before a handler committed stay consumed") {
  if (on_postgresql()) return;
  Torn t;
  const auto with_failure = messages_of({"bad", "d", "a", "tears", "e", "b"});
  const auto handler = [](soci::session& sql, Delivery& d) {
    if (d.message().business_key == "bad") throw std::runtime_error("an honest failure");
    tear(sql, d);
  };
  const auto results = t.consumer.consume_batch(with_failure, handler, OnFailure::skip);
  CHECK(outcomes(results) == Outcomes{failed, consumed, consumed, failed, consumed, consumed});
  // The whole run that came first was rolled back by the honest failure.
  CHECK(keys_in_state(t.db, "torn") == "tears");
  CHECK(keys_in_state(t.db, "consumed") == "a b d e");
  CHECK(t.db.effects() == 5);
  CHECK(t.db.effects_of("a") == 1);
}

TEST_CASE("without the right to DELETE, claims whose handlers had not started are parked too") {
  if (!on_mysql()) return;  // PostgreSQL lets nothing be torn, and SQLite has no users
  const EffectDatabase db;
  const User user(db);
  grant_service(user, db);
  user.grant("select, insert on " + schema_of(db) + ".effect");
  Pool pool = user.pool();
  TxConsumer consumer(pool, "svc");
  CHECK(outcomes(consumer.consume_batch(batch, tear, OnFailure::skip)) ==
        Outcomes{failed, failed, failed, failed, failed});
  CHECK(keys_in_state(db, "torn") == "a b d e tears");
  CHECK(db.effects() == 3);
  CHECK(outcomes(consumer.consume_batch(batch, add_effect)) == Outcomes{parked, parked, parked, parked, parked});
  CHECK(consumer.consume({.business_key = "next"}, add_effect).outcome == consumed);
}

TEST_CASE("a handler that committed its batch and lost the connection tears no message whose handler had not started") {
  if (!on_mysql()) return;
  for (const bool retries : {true, false}) {
    CAPTURE(retries);
    EffectDatabase db;
    Pool pool = db.pool(2);
    TxConsumer consumer(pool, "svc", {.retry = {.max_attempts = retries ? 5 : 1}});
    const auto results = consumer.consume_batch(batch, [&](soci::session& sql, Delivery& d) {
      add_effect(sql, d);
      if (d.message().business_key != "tears") return;
      sql.commit();
      kill_connection(sql, db);
      add_effect(sql, d);
    });
    CHECK(outcomes(results) == (retries ? Outcomes{parked, parked, parked, consumed, consumed}
                                        : Outcomes{failed, not_run, not_run, not_run, not_run}));
    CHECK(keys_in_state(db, "torn") == "a d tears");
    CHECK(keys_in_state(db, "consumed") == (retries ? "b e" : ""));
    CHECK(outcomes(consumer.consume_batch(batch, add_effect)) ==
          Outcomes{parked, parked, parked, retries ? duplicate : consumed, retries ? duplicate : consumed});
    CHECK(db.effects() == 5);
  }
}

TEST_CASE("a batch's claims that a handler's own COMMIT makes visible late are not reported as consumed") {
  if (on_sqlite3()) return;
  EffectDatabase db;
  prepare_late_commit(db);
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc");
  bool commits = true;
  const auto results = consumer.consume_batch(
      batch,
      [&](soci::session& sql, Delivery& d) {
        add_effect(sql, d);
        if (d.message().business_key != "tears" || !std::exchange(commits, false)) return;
        commit_late(sql);
        add_effect(sql, d);
      },
      OnFailure::skip);
  CHECK(results[3].outcome == consumed);
  CHECK(results[4].outcome == consumed);
  CHECK(db.effects() == 5);
  if (on_postgresql()) {
    CHECK(outcomes(results) == Outcomes{consumed, consumed, consumed, consumed, consumed});
    return;
  }
  // Failed or parked, depending on when the claims became visible.
  for (const std::size_t torn : {0UL, 1UL, 2UL}) CHECK(action_for(results[torn]) != Action::acknowledge);
  CHECK(keys_in_state(db, "torn") == "a d tears");
  CHECK(outcomes(consumer.consume_batch(batch, add_effect)) == Outcomes{parked, parked, parked, duplicate, duplicate});
  CHECK(db.effects() == 5);
}

TEST_CASE("PostgreSQL refuses the COMMIT of one message of a batch, and the others are consumed") {
  if (!on_postgresql()) return;
  for (const bool swallowed : {false, true}) {
    CAPTURE(swallowed);
    const EffectDatabase db;
    Pool pool = db.pool(1);
    TxConsumer consumer(pool, "svc");
    const auto handler = [&](soci::session& sql, Delivery& d) {
      if (!swallowed) return tear(sql, d);
      add_effect(sql, d);
      if (d.message().business_key == "tears") quietly([&] { sql.commit(); });
    };
    const auto results = consumer.consume_batch(batch, handler, OnFailure::skip);
    CHECK(outcomes(results) == Outcomes{consumed, consumed, failed, consumed, consumed});
    CHECK(code_of(results[2].error) == ErrorCode::transaction_lost);
    CHECK(keys_in_state(db, "consumed") == "a b d e");
    CHECK(db.claims() == 4);
    CHECK(db.effects() == 4);
    CHECK(outcomes(consumer.consume_batch(batch, add_effect)) ==
          Outcomes{duplicate, duplicate, consumed, duplicate, duplicate});
  }
}

TEST_CASE("another consumer does not acknowledge what a handler of a batch has committed by itself") {
  for (const OnFailure on_failure : {OnFailure::stop, OnFailure::skip}) {
    const EffectDatabase db;
    Pool pool = db.pool(2);
    TxConsumer consumer(pool, "svc", {.retry = {.max_attempts = 1}});
    TxConsumer elsewhere(pool, "svc", {.retry = {.max_attempts = 1}});
    bool acknowledged = false;
    const auto look = [&] {
      for (const char* key : {"d", "e"}) {
        try {
          const Result result = elsewhere.consume(
              {.business_key = key}, [](soci::session&, Delivery&) { throw std::runtime_error("not this time"); });
          acknowledged = acknowledged || action_for(result) == Action::acknowledge;
        } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): not acknowledged
        }
      }
    };
    int commits = 0;
    (void)consumer.consume_batch(
        batch,
        [&](soci::session& sql, Delivery& d) {
          add_effect(sql, d);
          if (d.message().business_key != "tears" || commits++ > 0) return;
          quietly([&] { sql.commit(); });
          if (!on_sqlite3()) look();  // its writer is one at a time
        },
        on_failure);
    CHECK_FALSE(acknowledged);
  }
}

TEST_CASE("the observer hears of a batch's torn claims when no connection is held") {
  if (!on_mysql()) return;  // the pools of the others let nothing be torn
  EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 1, .acquire_timeout = std::chrono::milliseconds(100)});
  std::vector<std::string> heard;
  TxConsumer consumer(pool, "svc", {.observer = [&](const Event& e) {
                        const auto free = pool.acquire();  // what it throws would be dropped, and nothing heard
                        heard.push_back(std::string(to_string(e.type)) + " " + std::string(e.business_key));
                      }});
  (void)consumer.consume_batch(messages_of({"tears"}), tear);
  CHECK(heard == std::vector<std::string>{"torn tears", "failed tears"});
}

}  // namespace
}  // namespace txinbox::test
