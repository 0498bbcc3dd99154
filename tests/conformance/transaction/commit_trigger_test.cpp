// PostgreSQL's trigger that refuses a handler's own commit: which rows it checks, and what `verify` reports about it.

#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/guard_cases.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123"};

void commit_in_silence(soci::session& sql, Delivery& d) {
  add_effect(sql, d);
  quietly([&] { sql.commit(); });
}

std::string what_verify_says(const TestDatabase& db, ErrorCode code) {
  try {
    verify(*db.session());
  } catch (const Error& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  return {};
}

TEST_CASE("the commit trigger checks claims and take-overs of leases, and no other rows" *
          doctest::skip(!on_postgresql())) {
  const EffectDatabase db;
  // These rows are like those that an older library, a restored dump and a lease write.
  db.run(
      "insert into txinbox_consumed_message (consumer, business_key, state, attempt_token, lease_owner, lease_fence, "
      "lease_expires_at) values ('svc', 'old', 'consumed', gen_random_uuid(), null, null, null), ('svc', 'left', "
      "'consuming', gen_random_uuid(), 'a worker', 1, now() - interval '1 minute')");
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume({.business_key = "old"}, add_effect).outcome == duplicate);
  CHECK(LeaseConsumer(pool, "svc").consume({.business_key = "leased"}, [](Lease&) {}).outcome == consumed);

  // The session that has made a claim writes other rows afterwards.
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
  CHECK(LeaseConsumer(pool, "svc").consume({.business_key = "leased later"}, [](Lease&) {}).outcome == consumed);

  const Message left{.business_key = "left"};
  CHECK(thrown_by([&] { (void)consumer.consume(left, commit_in_silence); }) == "transaction_lost");
  CHECK(db.text("select state from txinbox_consumed_message where business_key = 'left'") == "consuming");
  CHECK(consumer.consume(left, add_effect).outcome == consumed);
  CHECK(db.effects() == 2);
}

TEST_CASE("in a partitioned table only txinbox can commit a claim" * doctest::skip(!on_postgresql())) {
  const EffectDatabase db;
  db.run("alter table txinbox_consumed_message rename to plain");
  db.run(
      "create table txinbox_consumed_message (like plain including defaults including constraints including comments, "
      "primary key (consumer, business_key)) partition by hash (business_key)");
  db.run("create table part0 partition of txinbox_consumed_message for values with (modulus 2, remainder 0)");
  db.run("create table part1 partition of txinbox_consumed_message for values with (modulus 2, remainder 1)");
  db.run("create index on txinbox_consumed_message (consumed_at)");
  CHECK(what_verify_says(db, ErrorCode::schema_missing).find("txinbox_guard") != std::string::npos);
  migrate(*db.session());
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  for (const char* key : {"a", "b", "c", "d"}) {
    const Message message{.business_key = key};
    CHECK(thrown_by([&] { (void)consumer.consume(message, commit_in_silence); }) == "transaction_lost");
    CHECK(consumer.consume(message, add_effect).outcome == consumed);
  }
  CHECK(db.claims() == 4);
  CHECK(db.effects() == 4);
}

TEST_CASE("verify reports a missing or a changed trigger, and how to restore it" * doctest::skip(!on_postgresql())) {
  const EffectDatabase db;
  db.run("drop trigger txinbox_guard on txinbox_consumed_message");
  CHECK(what_verify_says(db, ErrorCode::schema_missing).find("txinbox migrate") != std::string::npos);
  migrate(*db.session());
  CHECK_NOTHROW(verify(*db.session()));
  db.run("alter table txinbox_consumed_message disable trigger txinbox_guard");
  CHECK(what_verify_says(db, ErrorCode::schema_mismatch).find("ENABLE TRIGGER txinbox_guard") != std::string::npos);
  db.run("alter table txinbox_consumed_message enable replica trigger txinbox_guard");
  CHECK_FALSE(what_verify_says(db, ErrorCode::schema_mismatch).empty());
  db.run("drop trigger txinbox_guard on txinbox_consumed_message");
  db.run(
      "create trigger txinbox_guard after insert on txinbox_consumed_message for each row execute function "
      "txinbox_refuse_commit()");
  CHECK(what_verify_says(db, ErrorCode::schema_mismatch).find("DROP TRIGGER txinbox_guard") != std::string::npos);
}

TEST_CASE("if the trigger is dropped later, the savepoint detects a handler's own commit, and its claim is torn" *
          doctest::skip(!on_postgresql())) {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.recent_keys = {.capacity = 10}});
  CHECK(consumer.consume({.business_key = "first"}, add_effect).outcome == consumed);
  db.run("drop trigger txinbox_guard on txinbox_consumed_message");
  CHECK(thrown_by([&] { (void)consumer.consume(order, commit_in_silence); }) == "transaction_lost");
  CHECK(consumer.consume(order, add_effect).outcome == parked);
  CHECK(db.text("select state from txinbox_consumed_message where business_key = 'order123'") == "torn");
}

}  // namespace
}  // namespace txinbox::test
