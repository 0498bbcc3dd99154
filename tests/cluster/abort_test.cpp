// Another node's commit aborts a transaction that is still open on this node. The next statement of the handler, or the
// commit, then fails with a deadlock. The claim was rolled back, too.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "cluster/cluster.hpp"
#include "support/guard_cases.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

constexpr int here = 2;
constexpr int there = 3;

/// A consumer on this node, either on a pool or on the caller's session.
class Here {
 public:
  Here(const ClusterDatabase& db, bool pooled)
      : pool_(db.pool(here, {.connections = 1})), session_(db.session(here)), pooled_(pooled) {
    *session_ << "set sql_mode = 'STRICT_ALL_TABLES'";
  }

  TxConsumer consumer(ConsumerOptions options = {}) {
    return pooled_ ? TxConsumer(pool_, "svc", std::move(options)) : TxConsumer(*session_, "svc", std::move(options));
  }

 private:
  Pool pool_;
  std::unique_ptr<soci::session> session_;
  bool pooled_;
};

/// Locks a row that another node then writes, and returns after the cluster has aborted this transaction because of it.
void be_overrun(const ClusterDatabase& db, soci::session& sql) {
  const auto aborted = db.status(here, "wsrep_local_bf_aborts");
  sql << "update account set n = n + 1 where id = 1";
  *db.session(there) << "update account set n = n + 100 where id = 1";
  while (db.status(here, "wsrep_local_bf_aborts") == aborted) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

TEST_CASE("a transaction that is aborted while its handler runs is repeated, and nothing of its first run remains") {
  for (const bool pooled : {true, false}) {
    // Whether the handler's next statement reports the abort, or only the commit.
    for (const bool at_commit : {true, false}) {
      CAPTURE(pooled);
      CAPTURE(at_commit);
      const ClusterDatabase db;
      Here node(db, pooled);
      int runs = 0;
      const Result result = node.consumer().consume({.business_key = "key"}, [&](soci::session& sql, Delivery& d) {
        ++runs;
        add_effect(sql, d);
        if (d.attempt() == 1) be_overrun(db, sql);
        if (!at_commit) sql << "update account set n = n + 1 where id = 2";
      });
      CHECK(result.outcome == consumed);
      CHECK(runs == 2);
      CHECK(db.number(there, "select count(*) from effect") == 1);
      CHECK(db.number(there, "select n from account where id = 1") == 100);
      CHECK(db.number(there, "select n from account where id = 2") == (at_commit ? 0 : 1));
      CHECK(db.number(there, "select count(*) from txinbox_consumed_message") == 1);
    }
  }
}

TEST_CASE("a batch that is aborted while its handler runs is repeated, and nothing of its first run remains") {
  for (const bool pooled : {true, false}) {
    for (const std::string last : {"a", "b", "c"}) {
      CAPTURE(pooled);
      CAPTURE(last);
      const ClusterDatabase db;
      Here node(db, pooled);
      bool aborted = false;
      const auto results =
          node.consumer().consume_batch(messages_of({"a", "b", "c"}), [&](soci::session& sql, Delivery& d) {
            add_effect(sql, d);
            if (aborted || d.message().business_key != last) return;
            aborted = true;
            be_overrun(db, sql);
          });
      CHECK(outcomes(results) == Outcomes{consumed, consumed, consumed});
      for (const char* key : {"a", "b", "c"}) CHECK(db.effects_of(key) == 1);
      CHECK(db.number(there, "select n from account where id = 1") == 100);
      CHECK(db.claims() == 3);
    }
  }
}

TEST_CASE("a Transaction that is aborted leaves nothing, and its commit fails") {
  const ClusterDatabase db;
  const auto sql = db.session(here);
  *sql << "set sql_mode = 'STRICT_ALL_TABLES'";
  for (const bool at_commit : {true, false}) {
    CAPTURE(at_commit);
    {
      Transaction transaction(*sql);
      CHECK(transaction.claim("svc", {.business_key = "key"}) == Claim::claimed);
      *sql << "insert into effect values ('key')";
      be_overrun(db, *sql);
      if (!at_commit) CHECK(thrown_by([&] { *sql << "insert into effect values ('key')"; }) == "transient");
      CHECK(thrown_by([&] { transaction.commit(); }) == (at_commit ? "transient" : "transaction_lost"));
    }
    CHECK(db.effects() == 0);
    CHECK(db.claims() == 0);
  }
  Transaction transaction(*sql);
  CHECK(transaction.claim("svc", {.business_key = "key"}) == Claim::claimed);
  *sql << "insert into effect values ('key')";
  transaction.commit();
  CHECK(db.number(there, "select count(*) from effect") == 1);
}

/// The act of a handler after its transaction was aborted, and how many of its rows remain. In a pool, txinbox notices
/// that a handler has switched autocommit on, and parks the message.
struct Careless {
  std::string name;
  std::function<void(soci::session&)> act;
  int left = 0;
  bool noticed_in_pool = false;
};

TEST_CASE("if a handler ignores the abort, the message is not acknowledged, and the next delivery runs or is parked") {
  const auto insert = [](soci::session& sql) { sql << "insert into effect values ('after')"; };
  const std::vector<Careless> all = {
      {"goes on",
       [&](soci::session& sql) {
         quietly([&] { insert(sql); });
         insert(sql);
       }},
      {"sets our autocommit on",
       [&](soci::session& sql) {
         quietly([&] { insert(sql); });
         insert(sql);
         sql << "set autocommit = 1";
       },
       1, true},
      {"commits",
       [&](soci::session& sql) {
         quietly([&] { insert(sql); });
         insert(sql);
         sql.commit();
       },
       1},
      {"commits at once",
       [&](soci::session& sql) {
         quietly([&] { sql.commit(); });
         insert(sql);
       }},
      {"begins and commits",
       [&](soci::session& sql) {
         quietly([&] { sql.begin(); });
         sql.begin();
         insert(sql);
         sql.commit();
       },
       1},
  };
  for (const bool pooled : {true, false}) {
    for (const Careless& each : all) {
      CAPTURE(pooled);
      CAPTURE(each.name);
      const ClusterDatabase db;
      Here node(db, pooled);
      TxConsumer consumer = node.consumer({.retry = {.max_runs = 1}});
      CHECK(thrown_by([&] {
              (void)consumer.consume({.business_key = "key"}, [&](soci::session& sql, Delivery& d) {
                add_effect(sql, d);
                be_overrun(db, sql);
                each.act(sql);
              });
            }) == "transaction_lost");
      CHECK(db.number(there, "select count(*) from effect where id = 'key'") == 0);
      CHECK(db.number(there, "select count(*) from effect where id = 'after'") == each.left);
      const bool parked = pooled && each.noticed_in_pool;
      CHECK(db.number(there, "select count(*) from txinbox_consumed_message where state = 'torn'") == (parked ? 1 : 0));
      CHECK(db.number(there, "select count(*) from txinbox_consumed_message") == (parked ? 1 : 0));
      CHECK(consumer.consume({.business_key = "key"}, add_effect).outcome == (parked ? Outcome::parked : consumed));
      CHECK(db.number(there, "select count(*) from effect where id = 'key'") == (parked ? 0 : 1));
    }
  }
}

TEST_CASE("in a batch, the message whose handler ignores the abort fails, and the others are consumed") {
  for (const bool pooled : {true, false}) {
    CAPTURE(pooled);
    const ClusterDatabase db;
    Here node(db, pooled);
    const auto results = node.consumer().consume_batch(
        messages_of({"a", "b", "c"}),
        [&](soci::session& sql, Delivery& d) {
          add_effect(sql, d);
          if (d.message().business_key != "b") return;
          be_overrun(db, sql);
          quietly([&] { add_effect(sql, d); });
          add_effect(sql, d);
        },
        OnFailure::skip);
    CHECK(outcomes(results) == Outcomes{consumed, failed, consumed});
    CHECK(code_of(results[1].error) == ErrorCode::transaction_lost);
    CHECK(db.effects_of("a") == 1);
    CHECK(db.effects_of("b") == 0);
    CHECK(db.effects_of("c") == 1);
    CHECK(db.claims() == 2);
  }
}

}  // namespace
}  // namespace txinbox::test
