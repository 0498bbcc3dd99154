// A handler that commits its batch's transaction. PostgreSQL and a pool on SQLite refuse this commit. On the other
// databases it also commits the claims of messages whose handlers have not started. txinbox deletes these claims. If it
// has no DELETE privilege, these messages are parked.

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/guard_cases.hpp"
#include "support/late_commit.hpp"
#include "support/outcomes.hpp"
#include "support/test_user.hpp"

namespace txinbox::test {
namespace {

/// Adds an effect. For the message "tears", also commits all effects and the claims of the whole batch, and fails.
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

/// A consumer whose handler can commit a batch's claims: on a pool of MariaDB or MySQL, or on a caller's session of
/// SQLite. A pool of SQLite refuses this commit.
struct Torn {
  EffectDatabase db;
  Pool pool = db.pool(1);
  std::unique_ptr<soci::session> sql = db.session();
  std::vector<std::string> heard;
  ConsumerOptions options = {.listeners = {on_event([this](const Event& e) {
                               heard.push_back(std::string(to_string(e.type)) + " " + std::string(e.business_key));
                             })}};
  TxConsumer consumer =
      only_pool_refuses_foreign_commit() ? TxConsumer(*sql, "svc", options) : TxConsumer(pool, "svc", options);
};

TEST_CASE(
    "with skip, the claims of messages after the handler that committed are deleted, and the messages are consumed" *
    doctest::skip(refuses_foreign_commit())) {
  Torn t;
  CHECK(outcomes(t.consumer.consume_batch(batch, tear, OnFailure::skip)) ==
        Outcomes{failed, failed, failed, consumed, consumed});
  CHECK(keys_in_state(t.db, "torn") == "a d tears");
  CHECK(keys_in_state(t.db, "consumed") == "b e");
  CHECK(t.db.effects() == 5);  // the handler has committed the effects of the torn messages
  CHECK(outcomes(t.consumer.consume_batch(batch, add_effect, OnFailure::skip)) ==
        Outcomes{parked, parked, parked, duplicate, duplicate});
  CHECK(t.db.effects() == 5);
}

TEST_CASE("with stop, messages after the handler that committed are not run, and leave no claim" *
          doctest::skip(refuses_foreign_commit())) {
  Torn t;
  const auto results = t.consumer.consume_batch(batch, tear);
  CHECK(outcomes(results) == Outcomes{failed, not_run, not_run, not_run, not_run});
  CHECK(code_of(results[0].error) == ErrorCode::transaction_lost);
  CHECK(keys_in_state(t.db, "torn") == "a d tears");
  CHECK(t.db.claims() == 3);
  CHECK(outcomes(t.consumer.consume_batch(batch, add_effect)) == Outcomes{parked, parked, parked, consumed, consumed});
  CHECK(t.db.effects() == 5);
}

TEST_CASE("the listener gets an event for each torn claim of a batch" * doctest::skip(refuses_foreign_commit())) {
  Torn t;
  (void)t.consumer.consume_batch(batch, tear, OnFailure::skip);
  CHECK(t.heard == std::vector<std::string>{"torn a", "torn d", "torn tears", "failed d", "failed a", "failed tears",
                                            "consumed e", "consumed b"});
}

TEST_CASE("with savepoints, messages that were released before a handler committed stay consumed" *
          doctest::skip(refuses_foreign_commit())) {
  Torn t;
  const auto with_failure = messages_of({"bad", "d", "a", "tears", "e", "b"});
  const auto handler = [](soci::session& sql, Delivery& d) {
    if (d.message().business_key == "bad") throw std::runtime_error("a failure of the handler");
    tear(sql, d);
  };
  const auto results = t.consumer.consume_batch(with_failure, handler, OnFailure::skip);
  CHECK(outcomes(results) == Outcomes{failed, consumed, consumed, failed, consumed, consumed});
  // The failure of the first message rolled back the first run, which had no savepoints.
  CHECK(keys_in_state(t.db, "torn") == "tears");
  CHECK(keys_in_state(t.db, "consumed") == "a b d e");
  CHECK(t.db.effects() == 5);
  CHECK(t.db.effects_of("a") == 1);
}

TEST_CASE("with savepoints, a released message keeps its result although a later handler committed" *
          doctest::skip(refuses_foreign_commit())) {
  Torn t;
  const auto results = t.consumer.consume_batch(
      messages_of({"bad", "a", "tears"}),
      [](soci::session& sql, Delivery& d) {
        if (d.message().business_key == "bad") throw std::runtime_error("a failure of the handler");
        d.store("result of " + d.message().business_key);
        tear(sql, d);
      },
      OnFailure::skip);
  CHECK(outcomes(results) == Outcomes{failed, consumed, failed});
  CHECK(t.consumer.consume({.business_key = "a"}, add_effect).stored == "result of a");
}

TEST_CASE("without the DELETE privilege, claims whose handlers had not started are parked, too" *
          doctest::skip(pool_refuses_foreign_commit() || !has_users())) {
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

TEST_CASE(
    "if a handler commits its batch and loses the connection, claims whose handlers had not started are not torn" *
    doctest::skip(pool_refuses_foreign_commit())) {
  for (const bool retries : {true, false}) {
    CAPTURE(retries);
    EffectDatabase db;
    Pool pool = db.pool(2);
    TxConsumer consumer(pool, "svc", {.retry = {.max_runs = retries ? 5 : 1}});
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

TEST_CASE("claims of a batch that a handler's own COMMIT makes visible late are not reported as consumed" *
          doctest::skip(!has_server())) {
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
  if (refuses_foreign_commit()) {
    CHECK(outcomes(results) == Outcomes{consumed, consumed, consumed, consumed, consumed});
    return;
  }
  // The outcome is failed or parked. It depends on when the claims became visible.
  for (const std::size_t torn : {0UL, 1UL, 2UL}) CHECK(action_for(results[torn]) != Action::acknowledge);
  CHECK(keys_in_state(db, "torn") == "a d tears");
  CHECK(outcomes(consumer.consume_batch(batch, add_effect)) == Outcomes{parked, parked, parked, duplicate, duplicate});
  CHECK(db.effects() == 5);
}

TEST_CASE("PostgreSQL refuses the COMMIT of one message of a batch, and the others are consumed" *
          doctest::skip(!refuses_foreign_commit())) {
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

TEST_CASE("another consumer does not acknowledge messages that a handler of a batch has committed by itself") {
  for (const OnFailure on_failure : {OnFailure::stop, OnFailure::skip}) {
    const EffectDatabase db;
    Pool pool = db.pool(2);
    TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 1}});
    TxConsumer elsewhere(pool, "svc", {.retry = {.max_runs = 1}});
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
          if (!one_writer()) look();
        },
        on_failure);
    CHECK_FALSE(acknowledged);
  }
}

TEST_CASE("the listener gets the events of a batch's torn claims while no connection is held" *
          doctest::skip(pool_refuses_foreign_commit())) {
  EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 1, .acquire_timeout = std::chrono::milliseconds(100)});
  std::vector<std::string> heard;
  TxConsumer consumer(pool, "svc",
                      {.listeners = {on_event([&](const Event& e) {
                         const auto free = pool.acquire();  // if this throws, `heard` stays empty
                         heard.push_back(std::string(to_string(e.type)) + " " + std::string(e.business_key));
                       })}});
  (void)consumer.consume_batch(messages_of({"tears"}), tear);
  CHECK(heard == std::vector<std::string>{"torn tears", "failed tears"});
}

}  // namespace
}  // namespace txinbox::test
