// MariaDB, MySQL and a caller's session on SQLite cannot refuse a handler's own commit. There txinbox
// inserts a claim as torn, and confirms it when it commits.

#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

bool is_inserted_as_torn(bool pooled) { return pooled ? !pool_refuses_foreign_commit() : !refuses_foreign_commit(); }

/// A consumer on a pool, and one on a caller's session.
struct Consumers {
  explicit Consumers(const EffectDatabase& db) : pool(db.pool(1)), sql(db.session()) {}

  Pool pool;
  std::unique_ptr<soci::session> sql;
  TxConsumer pooled{pool, "pooled"};
  TxConsumer own{*sql, "own"};
};

std::string state_seen_by(soci::session& sql) {
  std::string state;
  sql << "select state from txinbox_consumed_message where state <> 'consumed' or business_key = 'order123'",
      soci::into(state);
  return state;
}

TEST_CASE("a claim is torn until txinbox confirms it") {
  const EffectDatabase db;
  Consumers consumers(db);
  for (TxConsumer* consumer : {&consumers.pooled, &consumers.own}) {
    const bool pooled = consumer == &consumers.pooled;
    CAPTURE(pooled);
    std::string during;
    CHECK(consumer
              ->consume({.business_key = "order123"},
                        [&](soci::session& s, Delivery& d) {
                          add_effect(s, d);
                          during = state_seen_by(s);
                          d.store("receipt");
                        })
              .outcome == consumed);
    CHECK(during == (is_inserted_as_torn(pooled) ? "torn" : "consumed"));
    const Result again = consumer->consume({.business_key = "order123"}, add_effect);
    CHECK(again.outcome == duplicate);
    CHECK(again.stored == "receipt");
    db.run("delete from txinbox_consumed_message");
  }
}

TEST_CASE("each claim of a batch is confirmed, without a result or with a result of any length") {
  const EffectDatabase db;
  Consumers consumers(db);
  const std::string long_result(60'000, 'r');
  for (TxConsumer* consumer : {&consumers.pooled, &consumers.own}) {
    std::vector<Message> messages;
    for (int i = 0; i < 30; ++i) messages.push_back({.business_key = "key " + std::to_string(i)});
    const Handler handler = [&](soci::session& s, Delivery& d) {
      add_effect(s, d);
      if (d.index() % 3 == 0) d.store(d.index() % 2 == 0 ? long_result : "");
    };
    for (const Result& each : consumer->consume_batch(messages, handler)) CHECK(each.outcome == consumed);
    CHECK(db.number("select count(*) from txinbox_consumed_message where state = 'consumed'") == 30);
    const auto again = consumer->consume_batch(messages, add_effect);
    for (std::size_t i = 0; i < again.size(); ++i) {
      CHECK(again[i].outcome == duplicate);
      CHECK(again[i].stored.has_value() == (i % 3 == 0));
      if (i % 6 == 0) CHECK(again[i].stored == long_result);
    }
    db.run("delete from txinbox_consumed_message");
  }
}

TEST_CASE("if a handler deletes its claim, its SQL is not committed" * doctest::skip(refuses_foreign_commit())) {
  const EffectDatabase db;
  Consumers consumers(db);
  for (TxConsumer* consumer : {&consumers.pooled, &consumers.own}) {
    const bool pooled = consumer == &consumers.pooled;
    CAPTURE(pooled);
    if (!is_inserted_as_torn(pooled)) continue;  // the commit does not update the claim
    CHECK(thrown_by([&] {
            (void)consumer->consume({.business_key = "order123"}, [](soci::session& s, Delivery& d) {
              add_effect(s, d);
              s << "delete from txinbox_consumed_message";
            });
          }) == "transaction_lost");
    const auto results = consumer->consume_batch(messages_of({"a", "b"}), [](soci::session& s, Delivery& d) {
      add_effect(s, d);
      if (d.message().business_key == "b") s << "delete from txinbox_consumed_message";
    });
    CHECK(outcomes(results) == Outcomes{consumed, failed});  // with savepoints; the second one was rolled back
    CHECK(db.effects() == 1);
    CHECK(db.claims() == 1);
    db.run("delete from effect");
    db.run("delete from txinbox_consumed_message");
  }
}

}  // namespace
}  // namespace txinbox::test
