// Two nodes accept the same key, because neither has seen the other's claim yet. The cluster accepts one of the
// commits, and the other commit fails with 1213.

#include <array>
#include <functional>
#include <future>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "cluster/cluster.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

constexpr int first = 1;
constexpr int second = 2;

/// Commits a key on one node, and then on a node that has not seen it. Returns when the second node has answered.
class Contest {
 public:
  explicit Contest(bool pooled)
      : winners_(db_.pool(first, {.connections = 1})),
        losers_(db_.pool(second, {.connections = 1})),
        own_(db_.session(second)),
        pooled_(pooled) {
    *own_ << "set sql_mode = 'STRICT_ALL_TABLES'";
    *own_ << "set session transaction isolation level read committed";
  }

  const ClusterDatabase& db() const { return db_; }
  soci::session& session() const { return *own_; }
  int runs() const { return runs_; }
  int aborts() const { return aborts_; }

  TxConsumer loser(int max_attempts) {
    ConsumerOptions options{.retry = {.max_runs = max_attempts}};
    return pooled_ ? TxConsumer(losers_, "svc", options) : TxConsumer(*own_, "svc", options);
  }

  /// Returns the second node's answer. `deliver` gets the handler, and calls it once before the first node's claim
  /// arrives.
  template <class Deliver>
  auto run(Deliver deliver) {
    const auto counted = [this] {
      return db_.status(second, "wsrep_local_cert_failures") + db_.status(second, "wsrep_local_bf_aborts");
    };
    const auto before = counted();
    std::promise<void> inside;
    const Handler handler = [&](soci::session& sql, Delivery& d) {
      add_effect(sql, d);
      d.store("of the loser");
      if (++runs_ == 1) inside.set_value();
    };
    std::optional<Lag> lag(std::in_place, db_, second);
    const Result won = TxConsumer(winners_, "svc").consume(key_, [](soci::session& sql, Delivery& d) {
      add_effect(sql, d);
      d.store("of the winner");
    });
    CHECK(won.outcome == consumed);
    auto answer = std::async(std::launch::async, [&] { return deliver(handler); });
    inside.get_future().wait();
    lag.reset();
    auto answered = answer.get();
    aborts_ = static_cast<int>(counted() - before);
    return answered;
  }

  void check_books(long long keys) const {
    for (int node = 1; node <= nodes; ++node) {
      CAPTURE(node);
      CHECK(db_.number(node, "select count(*) from effect") == keys);
      CHECK(db_.number(node, "select count(distinct id) from effect") == keys);
      CHECK(db_.number(node, "select count(*) from txinbox_consumed_message where state = 'consumed'") == keys);
    }
  }

  const Message& key() const { return key_; }

 private:
  ClusterDatabase db_;
  Pool winners_;
  Pool losers_;
  std::unique_ptr<soci::session> own_;
  const bool pooled_;
  const Message key_{.business_key = "key"};
  std::atomic<int> runs_ = 0;
  int aborts_ = 0;
};

TEST_CASE("if two nodes have the same key, one commits, and the other reports already_consumed") {
  for (const bool pooled : {true, false}) {
    CAPTURE(pooled);
    Contest contest(pooled);
    const Result result =
        contest.run([&](const Handler& handler) { return contest.loser(20).consume(contest.key(), handler); });
    CHECK(result.outcome == duplicate);
    CHECK(result.stored == "of the winner");
    CHECK(contest.runs() >= 1);
    CHECK(contest.aborts() >= 1);
    contest.check_books(1);
  }
}

TEST_CASE("a certification failure without retries is a transient error, and the redelivery is a duplicate") {
  for (const bool pooled : {true, false}) {
    CAPTURE(pooled);
    Contest contest(pooled);
    TxConsumer loser = contest.loser(1);
    CHECK(contest.run([&](const Handler& handler) {
      return thrown_by([&] { (void)loser.consume(contest.key(), handler); });
    }) == "transient");
    CHECK(contest.runs() == 1);
    CHECK(contest.aborts() >= 1);
    CHECK(contest.db().number(second, "select count(*) from effect") == 1);
    CHECK(loser.consume(contest.key(), add_effect).outcome == duplicate);
    contest.check_books(1);
  }
}

TEST_CASE("if another node consumes one key of a batch first, the other keys are consumed once each") {
  for (const bool pooled : {true, false}) {
    CAPTURE(pooled);
    Contest contest(pooled);
    const auto results = contest.run([&](const Handler& handler) {
      return contest.loser(20).consume_batch(messages_of({"a", "key", "z"}), handler);
    });
    CHECK(outcomes(results) == Outcomes{consumed, duplicate, consumed});
    CHECK(results[1].stored == "of the winner");
    CHECK(contest.aborts() >= 1);
    contest.check_books(3);
  }
}

TEST_CASE("a Transaction's commit that fails certification throws a transient error and leaves nothing") {
  Contest contest(false);
  soci::session& sql = contest.session();
  CHECK(contest.run([&](const Handler& handler) {
    return thrown_by([&] {
      Transaction transaction(sql);
      CHECK(transaction.claim("svc", contest.key()) == Claim::claimed);
      Delivery delivery(contest.key(), 1, {}, 0);
      handler(sql, delivery);
      transaction.commit();
    });
  }) == "transient");
  {
    Transaction transaction(sql);
    CHECK(transaction.claim("svc", contest.key()) == Claim::already_consumed);
  }
  contest.check_books(1);
}

}  // namespace
}  // namespace txinbox::test
