// Each way in which a handler can lose the transaction, in the middle of a batch: which messages it affects, and what
// their results are. guard_test.cpp has the same for a single message.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/guard_cases.hpp"
#include "support/outcomes.hpp"
#include "support/test_user.hpp"

namespace txinbox::test {
namespace {

const std::string culprit = "c";
const std::vector<std::string> keys = {"d", "a", culprit, "e", "b"};

/// How the batch is run.
struct Mode {
  std::string name;
  bool pooled;
  OnFailure on_failure;
  bool with_savepoints = false;  ///< An ordinary failure comes first, so that each message has a savepoint.
};

const std::vector<Mode> modes = {
    {"pool, skip", true, OnFailure::skip},
    {"pool, stop", true, OnFailure::stop},
    {"pool, savepoints", true, OnFailure::skip, true},
    {"session, skip", false, OnFailure::skip},
    {"session, stop", false, OnFailure::stop},
    {"session, savepoints", false, OnFailure::skip, true},
};

/// The claim of one consumer, because all modes run in the same database.
std::string claim_of(const EffectDatabase& db, const std::string& consumer, const std::string& key) {
  return db.claim_of(key, " and consumer = '" + consumer + "'");
}

void nothing(soci::session&, Delivery&) {}

void leave(soci::session& sql, const std::string& id) { sql << "insert into effect values (:id)", soci::use(id); }

void behave(soci::session& sql, Delivery& d) {
  leave(sql, d.message().business_key + "-before");
  leave(sql, d.message().business_key + "-after");
}

Handler with_culprit(const GuardCase& each, EffectDatabase& db, int& culprits_runs) {
  return [&](soci::session& sql, Delivery& d) {
    if (d.message().business_key == "bad") throw HandlersOwnError("a failure of the handler");
    if (d.message().business_key != culprit) return behave(sql, d);
    ++culprits_runs;
    leave(sql, culprit + "-before");
    each.misbehave(sql, db);
    quietly([&] { leave(sql, culprit + "-after"); });
  };
}

bool is_acknowledged(const Result& result) { return action_for(result) == Action::acknowledge; }

/// Checks what holds for each message, for any misbehaviour of the handler.
void check_result(const EffectDatabase& db, const std::string& consumer, const std::string& key, const Result& result) {
  CAPTURE(key);
  CAPTURE(to_string(result.outcome));
  const std::string claim = claim_of(db, consumer, key);
  if (is_acknowledged(result)) {
    CHECK(claim == "consumed");
    CHECK(db.effects_of(key + "-before") == 1);
    // SQL that a handler runs after the end of its transaction may stay. docs/reference/guard.md says on which
    // database.
    if (key == culprit) CHECK(db.effects_of(key + "-after") >= 1);
  } else {
    CHECK(claim != "consumed");
  }
  if (key == culprit) return;
  if (is_acknowledged(result)) {
    CHECK(db.effects_of(key + "-after") == 1);
  } else {
    CHECK(db.effects_of(key + "-before") <= 1);
    CHECK(db.effects_of(key + "-after") == db.effects_of(key + "-before"));
  }
}

/// Delivers all messages again, twice.
void check_redeliveries(const EffectDatabase& db, const std::string& consumer, std::set<std::string> acknowledged) {
  Pool pool = db.pool(1);
  TxConsumer again(pool, consumer);
  const auto messages = messages_of(keys);
  std::map<std::string, std::string> claims;
  for (const std::string& key : keys) claims[key] = claim_of(db, consumer, key);
  for (int round = 0; round < 2; ++round) {
    const auto results = again.consume_batch(messages, behave, OnFailure::skip);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      CAPTURE(keys[i]);
      CHECK(results[i].outcome == (claims[keys[i]] == "torn"        ? Outcome::parked
                                   : acknowledged.contains(keys[i]) ? Outcome::already_consumed
                                                                    : consumed));
      check_result(db, consumer, keys[i], results[i]);
      if (is_acknowledged(results[i])) acknowledged.insert(keys[i]);
    }
  }
}

void check_case(EffectDatabase& db, const GuardCase& each, const Ending& alone, const Mode& mode) {
  db.run("delete from effect");
  db.run("drop table if exists made_by_handler");
  const std::string consumer_name = mode.name;
  Pool pool = db.pool(2);
  auto sql = db.session();
  auto consumer = mode.pooled ? std::make_unique<TxConsumer>(pool, consumer_name)
                              : std::make_unique<TxConsumer>(*sql, consumer_name);
  auto messages = messages_of(keys);
  if (mode.with_savepoints) messages.insert(messages.begin(), {.business_key = "bad"});
  int culprits_runs = 0;
  auto results = consumer->consume_batch(messages, with_culprit(each, db, culprits_runs), mode.on_failure);
  if (mode.with_savepoints) {
    CHECK(results[0].outcome == failed);
    CHECK(claim_of(db, consumer_name, "bad") == "none");
    results.erase(results.begin());
  }

  std::set<std::string> acknowledged;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    check_result(db, consumer_name, keys[i], results[i]);
    if (is_acknowledged(results[i])) acknowledged.insert(keys[i]);
  }
  const Outcomes all = outcomes(results);
  const bool stop = mode.on_failure == OnFailure::stop;
  if (alone.how == "consumed") {
    CHECK(all == Outcomes{consumed, consumed, consumed, consumed, consumed});
  } else if (mode.pooled && (alone.claim == "none" || mode.with_savepoints)) {
    // Only the misbehaving message has failed, and only its claim may be torn.
    CHECK(all == Outcomes{consumed, consumed, failed, stop ? not_run : consumed, stop ? not_run : consumed});
    CHECK(claim_of(db, consumer_name, culprit) == alone.claim);
    CHECK(culprits_runs == (mode.with_savepoints ? 1 : 2));  // no more runs, because each one may leave SQL
  } else {
    // The handler has affected the messages that share its transaction, or the caller's session.
    CHECK(all[2] != consumed);
    CHECK(claim_of(db, consumer_name, culprit) == alone.claim);
  }
  consumer.reset();  // it uses the session until its end
  sql.reset();       // also releases the locks of a handler that continued
  check_redeliveries(db, consumer_name, acknowledged);
}

TEST_CASE("if a handler loses a batch's transaction, each other message still takes effect exactly once") {
  for (const GuardCase& each : guard_cases()) {
    if (!each.in_pool) continue;
    CAPTURE(each.name);
    EffectDatabase db;
    prepare_guard_case(db);
    for (const Mode& mode : modes) {
      CAPTURE(mode.name);
      check_case(db, each, mode.pooled ? *each.in_pool : *each.in_session, mode);
    }
  }
}

TEST_CASE(
    "a handler that closes the session in every run of a batch gets transaction_lost, and the other messages are "
    "consumed") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc");
  const auto results = consumer.consume_batch(
      messages_of({"a", culprit, "b"}),
      [](soci::session& sql, Delivery& d) {
        behave(sql, d);
        if (d.message().business_key == culprit) sql.close();
      },
      OnFailure::skip);
  CHECK(code_of(results[1].error) == ErrorCode::transaction_lost);
  CHECK(action_for(results[1]) == Action::redeliver);
  CHECK(claim_of(db, "svc", culprit) == "none");
  CHECK(results[0].outcome == consumed);
  CHECK(results[2].outcome == consumed);
}

// On PostgreSQL, one row of a batch has the guard.
TEST_CASE("the server refuses the commit of a batch's claims, whichever of its keys are duplicates" *
          doctest::skip(!on_postgresql())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  const auto sql = db.session();
  const auto messages = messages_of({"a", "b", "c"});
  for (const bool pooled : {true, false}) {
    for (const unsigned old : {0U, 1U, 2U, 3U, 4U, 5U, 6U}) {  // a bit for each key that was consumed before
      CAPTURE(pooled);
      CAPTURE(old);
      db.run("delete from txinbox_consumed_message");
      TxConsumer consumer = pooled ? TxConsumer(pool, "svc") : TxConsumer(*sql, "svc");
      for (unsigned i = 0; i < 3; ++i) {
        if ((old >> i & 1U) != 0) CHECK(consumer.consume(messages[i], nothing).outcome == consumed);
      }
      (void)consumer.consume_batch(messages, [](soci::session& s, std::span<Delivery>) {
        try {
          s << "commit";
        } catch (const soci::soci_error&) {
          throw HandlersOwnError("the commit was refused");
        }
      });
      for (unsigned i = 0; i < 3; ++i) {
        CHECK(db.claim_of(messages[i].business_key) == ((old >> i & 1U) != 0 ? "consumed" : "none"));
      }
      (void)consumer.consume_batch(messages, nothing);
      CHECK(db.number("select count(*) from txinbox_consumed_message where state = 'consumed'") == 3);
    }
  }
}

TEST_CASE("the server refuses the commit of a batch's claims also after the message with the guard has failed" *
          doctest::skip(!on_postgresql())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  const auto sql = db.session();
  for (const bool pooled : {true, false}) {
    CAPTURE(pooled);
    db.run("delete from txinbox_consumed_message");
    TxConsumer consumer = pooled ? TxConsumer(pool, "svc") : TxConsumer(*sql, "svc");
    bool commits = false;
    const auto results = consumer.consume_batch(
        messages_of({"c", "b", "a"}),
        [&](soci::session& s, Delivery& d) {
          if (d.message().business_key == "c") throw HandlersOwnError("a failure of the handler");
          if (d.message().business_key != "b" || commits) return;
          commits = true;
          CHECK_THROWS_AS(s << "commit", soci::soci_error);
        },
        OnFailure::skip);
    CHECK(commits);
    CHECK(!is_acknowledged(results[0]));
    CHECK(db.claim_of("c") == "none");
    for (std::size_t i = 1; i < results.size(); ++i) {
      CHECK(is_acknowledged(results[i]) == (db.claim_of(i == 1 ? "b" : "a") == "consumed"));
    }
  }
}

}  // namespace
}  // namespace txinbox::test
