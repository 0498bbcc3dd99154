// A handler rolls back the transaction of its message, and then commits SQL of its own. The message is parked, because
// another run would double that SQL.

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/schema_tools.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123"};
const std::string effect = "insert into effect values ('order123')";

using Statements = std::vector<std::string>;

/// Runs the statements one after the other, and swallows their errors.
Handler running(const Statements& statements) {
  return [statements](soci::session& sql, Delivery&) {
    for (const std::string& each : statements) {
      try {
        sql << each;
      } catch (const soci::soci_error&) {  // it was refused
      }
    }
  };
}

std::vector<Statements> committing_handlers() {
  return here<std::vector<Statements>>({},
                                       {{"rollback", "set autocommit = 1", effect},
                                        {effect, "rollback", "set session autocommit = on", effect},
                                        {"rollback", "set autocommit = 1", effect, "set autocommit = 0", "select 1"}},
                                       {{"rollback", "discard all", effect},
                                        {"rollback", "reset all", effect},
                                        {"commit", "reset all", effect},
                                        {"rollback", "set session characteristics as transaction read write", effect},
                                        {effect, "rollback and chain", effect, "commit"},
                                        {effect, "rollback and chain", effect, "commit and chain"},
                                        {"rollback", "begin read write", effect, "commit"},
                                        {effect, "commit", "begin read write", effect, "commit"},
                                        {"rollback", "begin", "set transaction read write", effect, "commit"}});
}

TEST_CASE("a message whose handler rolls back and then commits SQL of its own is parked" *
          doctest::skip(pool_refuses_every_commit())) {
  for (const Statements& statements : committing_handlers()) {
    CAPTURE(statements.back());
    CAPTURE(statements[statements.size() - 2]);
    const EffectDatabase db;
    Pool pool = db.pool(1);
    TxConsumer consumer(pool, "svc");
    CHECK(thrown_by([&] { (void)consumer.consume(order, running(statements)); }) == "transaction_lost");
    CHECK(db.effects() == 1);
    CHECK(db.claim_of("order123") == "torn");
    CHECK(consumer.consume(order, add_effect).outcome == parked);
    CHECK(consumer.consume({.business_key = "next"}, add_effect).outcome == consumed);
    CHECK(db.effects() == 2);
    CHECK(forget(*db.session(), "svc", "order123"));
  }
}

TEST_CASE("in a batch, all messages whose handlers had begun are parked" * doctest::skip(pool_refuses_every_commit())) {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto results = consumer.consume_batch(
      messages_of({"a", "order123", "c"}),
      [](soci::session& sql, Delivery& delivery) {
        if (delivery.message().business_key == "order123") {
          running(committing_handlers().front())(sql, delivery);
        } else {
          add_effect(sql, delivery);
        }
      },
      OnFailure::skip);
  CHECK(results[1].outcome == Outcome::failed);
  CHECK(results[2].outcome == consumed);
  CHECK(db.claim_of("order123") == "torn");
  CHECK(db.effects_of("order123") == 1);
  CHECK(consumer.consume(order, add_effect).outcome == parked);
}

TEST_CASE("a message whose handler rolls back and commits nothing runs again") {
  const auto handlers = here<std::vector<Statements>>(
      {{effect, "rollback"}, {"savepoint a", effect, "rollback to a", effect, "rollback"}},
      {{effect, "rollback"},
       {effect, "rollback", effect},
       {"savepoint a", effect, "rollback to savepoint a", effect, "rollback"}},
      {{effect, "rollback"},
       {effect, "rollback", effect},
       {effect, "rollback", "select 1"},
       {"set local statement_timeout = 1000", "savepoint a", effect, "rollback to a", effect, "rollback"},
       {effect, "rollback", "begin read write", effect},
       {effect, "rollback", "begin", effect, "commit"},
       {effect, "rollback", "begin", "select 1", "commit"},
       {effect, "commit"}});
  for (const Statements& statements : handlers) {
    CAPTURE(statements.size());
    const EffectDatabase db;
    Pool pool = db.pool(1);
    TxConsumer consumer(pool, "svc");
    CHECK(thrown_by([&] { (void)consumer.consume(order, running(statements)); }) == "transaction_lost");
    CHECK(db.claim_of("order123") == "none");
    CHECK(consumer.consume(order, add_effect).outcome == consumed);
    CHECK(db.effects() == 1);
  }
}

TEST_CASE("a handler may change settings, use savepoints and write after both" * doctest::skip(on_sqlite3())) {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const Statements statements = {"savepoint a", effect, "rollback to savepoint a",
                                 here<std::string>("", "set max_sort_length = 100", "set local lock_timeout = 500"),
                                 effect};
  CHECK(consumer.consume(order, running(statements)).outcome == consumed);
  CHECK(db.effects() == 1);
}

}  // namespace
}  // namespace txinbox::test
