#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/operations.hpp>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123"};

TEST_CASE("a rolled-back claim can be claimed again") {
  EffectDatabase db;
  const auto sql = db.session();
  {
    Transaction transaction(*sql);
    CHECK(transaction.claim("svc", order) == Claim::claimed);
    *sql << "insert into effect values ('x')";
    transaction.rollback();
  }
  {
    Transaction abandoned(*sql);
    CHECK(abandoned.claim("svc", order) == Claim::claimed);
  }
  CHECK(db.effects() == 0);
  Transaction transaction(*sql);
  CHECK(transaction.claim("svc", order) == Claim::claimed);
  *sql << "insert into effect values ('x')";
  transaction.commit();
  CHECK(db.effects() == 1);
}

TEST_CASE("a committed claim is already_consumed for every session") {
  EffectDatabase db;
  const auto sql = db.session();
  {
    Transaction transaction(*sql);
    CHECK(transaction.claim("svc", order) == Claim::claimed);
    transaction.commit();
  }
  Transaction again(*sql);
  CHECK(again.claim("svc", order) == Claim::already_consumed);
  again.rollback();
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::already_consumed);
  CHECK(db.effects() == 0);
}

TEST_CASE("several claims commit together, also with a duplicate among them") {
  EffectDatabase db;
  const auto sql = db.session();
  {
    Transaction transaction(*sql);
    CHECK(transaction.claim("svc", {.business_key = "a"}) == Claim::claimed);
    CHECK(transaction.claim("svc", {.business_key = "a"}) == Claim::already_consumed);
    CHECK(transaction.claim("svc", {.business_key = "b"}) == Claim::claimed);
    CHECK(transaction.claim("other", {.business_key = "b"}) == Claim::claimed);
    *sql << "insert into effect values ('x')";
    transaction.commit();
  }
  CHECK(db.claims() == 3);
  CHECK(db.effects() == 1);
}

TEST_CASE("a Transaction whose transaction was ended before the first claim does not commit") {
  EffectDatabase db;
  const auto sql = db.session();
  Transaction transaction(*sql);
  *sql << "insert into effect values ('lost')";
  *sql << "rollback";
  *sql << (on_mysql() ? "start transaction" : "begin");
  CHECK(transaction.claim("svc", order) == Claim::claimed);
  try {
    transaction.commit();
    FAIL("nothing was thrown");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::transaction_lost);
  }
  CHECK(db.claims() == 0);
  CHECK(db.effects() == 0);
}

TEST_CASE("a Transaction on a session inside a transaction is refused") {
  EffectDatabase db;
  const auto sql = db.session();
  sql->begin();
  *sql << "insert into effect values ('mine')";
  try {
    Transaction transaction(*sql);
    FAIL("nothing was thrown");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::transaction_open);
  }
  sql->commit();
  CHECK(db.effects() == 1);
}

TEST_CASE("a claim finds a row that was committed after the REPEATABLE READ snapshot" * doctest::skip(!on_mysql())) {
  EffectDatabase db;
  const auto sql = db.session();
  *sql << "set session transaction isolation level repeatable read";
  Transaction transaction(*sql);
  long long rows = 0;
  *sql << "select count(*) from txinbox_consumed_message", soci::into(rows);  // takes the snapshot
  {
    Pool pool = db.pool(1);
    TxConsumer consumer(pool, "svc");
    CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
  }
  CHECK(transaction.claim("svc", order) == Claim::already_consumed);
}

TEST_CASE("a Transaction works on a pool's connection, and a consumer can use the connection afterwards") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  {
    auto connection = pool.acquire();
    Transaction transaction(connection);
    CHECK(transaction.claim("svc", order) == Claim::claimed);
    connection.session() << "insert into effect values ('x')";
    transaction.commit();
  }
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::already_consumed);
  CHECK(consumer.consume({.business_key = "next"}, add_effect).outcome == Outcome::consumed);
  CHECK(db.effects() == 2);
}

TEST_CASE("a claim with an invalid key is refused, and so is the commit after it") {
  EffectDatabase db;
  const auto sql = db.session();
  Transaction transaction(*sql);
  CHECK_THROWS_AS(transaction.claim("svc", {.business_key = ""}), Error);
  CHECK_THROWS_AS(transaction.claim("", order), Error);
  CHECK(transaction.claim("svc", order) == Claim::claimed);
  CHECK_THROWS_AS(transaction.commit(), Error);
  CHECK(db.claims() == 0);
}

TEST_CASE("a claim of an erased key is a duplicate, and the transaction can go on") {
  EffectDatabase db;
  const auto sql = db.session();
  const auto claim_in_transaction = [&](const Message& message) {
    Transaction transaction(*sql);
    const Claim claim = transaction.claim("svc", message);
    if (claim == Claim::claimed) *sql << "insert into effect values ('" + message.business_key + "')";
    CHECK(transaction.claim("svc", {.business_key = "after " + message.business_key}) == Claim::claimed);
    transaction.commit();
    return claim;
  };
  CHECK(claim_in_transaction(order) == Claim::claimed);
  const std::vector<std::string> keys{order.business_key};
  CHECK(erase(*sql, "svc", keys, {.actor = "ann"}, {.no_consumer_runs = true}).front() == EraseOutcome::erased);
  db.run("delete from txinbox_consumed_message where business_key = 'after order123'");
  CHECK(claim_in_transaction(order) == Claim::already_consumed);
  CHECK(db.effects() == 1);
  CHECK(db.number("select count(*) from txinbox_consumed_message where business_key = 'order123'") == 0);
  db.run("update txinbox_consumed_message set state = 'discarded'");
  db.run("delete from txinbox_consumed_message where business_key = 'after order123'");
  CHECK(claim_in_transaction(order) == Claim::discarded);
  db.run("update txinbox_consumed_message set state = 'consumed'");
  db.run("delete from txinbox_consumed_message where business_key = 'after order123'");
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  CHECK(claim_in_transaction({.business_key = "order123", .valid_for = std::chrono::milliseconds(1)}) ==
        Claim::claimed);
}

TEST_CASE("commit and rollback wait until a row that a claim has found is durable" *
          doctest::skip(!on_mariadb() || has_binary_log())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
  // A change of this column makes the commit wait for the log.
  const auto mark = [&] { return db.number("select coalesce(attempts, 0) from txinbox_consumed_message"); };
  const long long before = mark();
  const auto sql = db.session();
  for (const bool commits : {true, false}) {
    Transaction transaction(*sql);
    CHECK(transaction.claim("svc", order) == Claim::already_consumed);
    if (commits) {
      transaction.commit();
    } else {
      transaction.rollback();
    }
    CHECK(mark() == (commits ? 1 - before : before));
  }
}

}  // namespace
}  // namespace txinbox::test
