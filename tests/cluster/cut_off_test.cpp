// A node that is separated from the others still answers its clients: it refuses their statements.

#include <exception>
#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/inspect.hpp>
#include <txinbox/txinbox.hpp>

#include "cluster/cluster.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

constexpr int victim = 3;
constexpr int other = 1;

const ConsumerOptions once = {.retry = {.max_runs = 1}};

/// How a delivery ends: its outcome, or the kind of its error.
std::string consume_one(TxConsumer& consumer, const std::string& key) {
  std::string outcome;
  const std::string thrown =
      thrown_by([&] { outcome = std::string(to_string(consumer.consume({.business_key = key}, add_effect).outcome)); });
  return thrown == "nothing" ? outcome : thrown;
}

/// The same for a batch. A batch may report the error in a result.
std::string consume_as_batch(TxConsumer& consumer, const std::string& key) {
  std::string outcome;
  const std::string thrown = thrown_by([&] {
    const Result result = consumer.consume_batch(messages_of({key}), add_effect).at(0);
    outcome = std::string(to_string(result.outcome));
    if (result.error) std::rethrow_exception(result.error);
  });
  return thrown == "nothing" ? outcome : thrown;
}

std::string claim_by_hand(soci::session& sql, const std::string& key) {
  return thrown_by([&] {
    Transaction transaction(sql);
    (void)transaction.claim("svc", {.business_key = key});
    transaction.commit();
  });
}

/// Consumers of each kind on the victim. Each has already consumed a key there.
struct Victims {
  explicit Victims(const ClusterDatabase& db)
      : pool(db.pool(victim, {.connections = 2})), session(db.session(victim)), by_hand(db.session(victim)) {
    for (soci::session* each : {session.get(), by_hand.get()}) *each << "set sql_mode = 'STRICT_ALL_TABLES'";
    CHECK(consume_one(pooled, "known") == "consumed");
    CHECK(consume_one(on_session, "known") == "already_consumed");
    CHECK(consume_as_batch(pooled, "known") == "already_consumed");
  }

  Pool pool;
  std::unique_ptr<soci::session> session, by_hand;
  TxConsumer pooled{pool, "svc", once};
  TxConsumer on_session{*session, "svc", once};
};

TEST_CASE("a node that is cut off acknowledges nothing, fails transiently, and consumes again once it is back") {
  const ClusterDatabase db;
  Victims at(db);
  Pool elsewhere = db.pool(other);
  TxConsumer consumer(elsewhere, "svc");
  cut_off(victim);
  // The commit is sent before the node knows that it is separated.
  CHECK(consume_one(at.pooled, "on its way") == "transient");
  wait_until_refusing(victim);

  for (const char* key : {"new", "known"}) {
    CAPTURE(key);
    for (int i = 0; i < 5; ++i) {  // after some duplicates in a row, a key is read before it is inserted
      CHECK(consume_one(at.pooled, key) == "transient");
      CHECK(consume_as_batch(at.pooled, key) == "transient");
      CHECK(consume_one(at.on_session, key) == "transient");
      CHECK(consume_as_batch(at.on_session, key) == "transient");
      CHECK(claim_by_hand(*at.by_hand, key) == "transient");
    }
  }
  Pool opened_meanwhile = db.pool(victim);
  TxConsumer late(opened_meanwhile, "svc", once);
  CHECK(consume_one(late, "known") == "transient");
  CHECK(thrown_by([&] { (void)find_message(*at.session, "svc", "known"); }) == "transient");
  CHECK(thrown_by([&] { (void)forget(*at.session, "svc", "known"); }) == "transient");
  CHECK(thrown_by([&] { migrate(*at.session); }) == "transient");
  CHECK(thrown_by([&] { verify(*at.session); }) == "transient");
  CHECK(thrown_by([&] { (void)diagnose(*at.session); }) == "transient");
  CHECK(consumer.consume({.business_key = "known"}, add_effect).outcome == duplicate);
  CHECK(consumer.consume({.business_key = "elsewhere"}, add_effect).outcome == consumed);

  let_back(victim);
  wait_until_synced(victim);
  CHECK(consume_one(late, "known") == "already_consumed");
  CHECK(consume_one(at.pooled, "known") == "already_consumed");
  CHECK(consume_one(at.pooled, "elsewhere") == "already_consumed");
  CHECK(consume_one(at.pooled, "new") == "consumed");
  CHECK(consume_one(at.on_session, "new") == "already_consumed");
  CHECK(consume_one(at.on_session, "new on the session") == "consumed");
  CHECK(consume_as_batch(at.pooled, "new in a batch") == "consumed");
  CHECK(consume_as_batch(at.on_session, "new in a batch on the session") == "consumed");
  CHECK(claim_by_hand(*at.by_hand, "by hand") == "nothing");
  // It was unknown whether the key had taken effect. After the redelivery, it has taken effect once.
  (void)consume_one(at.pooled, "on its way");
  CHECK(db.effects_of("on its way") == 1);
  CHECK(db.effects() == 7);
  CHECK(db.claims() == 8);
}

}  // namespace
}  // namespace txinbox::test
