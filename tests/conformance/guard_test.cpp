// Each way in which a handler can lose the transaction, on each database: how `consume` ends, what the
// tables hold afterwards, and what the next delivery is told. The table that it prints is the one in
// docs/guard.md.

#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/guard_cases.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

/// What was there after the delivery.
Ending observe(TestDatabase& db, TxConsumer& consumer, const GuardCase& each) {
  const Message message{.business_key = "key"};
  Ending ending;
  try {
    const Result result = consumer.consume(message, [&](soci::session& sql, Delivery&) {
      sql << "insert into effect values ('before')";
      each.misbehave(sql, db);
      quietly([&] { sql << "insert into effect values ('after')"; });
    });
    ending.how = std::string(to_string(result.outcome));
  } catch (const Error& e) {
    ending.how = std::string(to_string(e.code()));
  } catch (const HandlersOwnError&) {
    ending.how = "handler's error";
  } catch (const soci::soci_error&) {
    ending.how = "handler's error";
  }
  const bool there = db.number("select count(*) from txinbox_consumed_message where business_key = 'key'") == 1;
  ending.claim = there ? db.text("select state from txinbox_consumed_message where business_key = 'key'") : "none";
  ending.before = db.number("select count(*) from effect where id = 'before'");
  ending.after = db.number("select count(*) from effect where id = 'after'");
  return ending;
}

/// What holds for every handler on every database: an acknowledgement means a claim with all of its
/// SQL, and what is not acknowledged is never taken for consumed.
void check_invariants(const Ending& ending, TxConsumer& consumer, TestDatabase& db, std::string& next) {
  if (ending.how == "consumed") {
    CHECK(ending.claim == "consumed");
    CHECK(ending.before == 1);
  } else {
    CHECK(ending.claim != "consumed");
  }
  db.run("delete from effect");
  int runs = 0;
  const Result second = consumer.consume({.business_key = "key"}, [&](soci::session& sql, Delivery&) {
    ++runs;
    sql << "insert into effect values ('before')";
  });
  next = std::string(to_string(second.outcome));
  if (ending.claim == "none") CHECK(second.outcome == Outcome::consumed);
  if (ending.claim == "torn") CHECK(second.outcome == Outcome::parked);
  if (ending.claim == "consumed") CHECK(second.outcome == Outcome::already_consumed);
  CHECK(db.number("select count(*) from effect") == runs);
}

void run_table(const std::string& mode, const std::function<Ending(TestDatabase&, const GuardCase&, std::string&)>& run) {
  std::string table = fmt::format("\nGuard, {}, {}\n| the handler | consume ends in | claim | SQL before | SQL after | next delivery |\n"
                                  "|---|---|---|---|---|---|\n",
                                  database(), mode);
  for (const GuardCase& each : guard_cases()) {
    const auto& expected = mode == "pool" ? each.in_pool : each.in_session;
    if (!expected) continue;  // the database has no such statement
    CAPTURE(mode);
    CAPTURE(each.name);
    TestDatabase db;
    db.run("create table effect (id varchar(20) not null)");
    prepare_guard_case(db);
    std::string next;
    const Ending ending = run(db, each, next);
    CHECK(ending == *expected);
    table += fmt::format("| {} | {} | {} | {} | {} | {} |\n", each.name, ending.how, ending.claim,
                         ending.before != 0 ? "stays" : "undone", ending.after != 0 ? "stays" : "undone", next);
  }
  fmt::print("{}", table);
}

}  // namespace

TEST_CASE("a handler that loses a pool's transaction is never acknowledged") {
  run_table("pool", [](TestDatabase& db, const GuardCase& each, std::string& next) {
    Pool pool = db.pool(2);
    TxConsumer consumer(pool, "guard", {.retry = {.max_attempts = 1}});
    const Ending ending = observe(db, consumer, each);
    check_invariants(ending, consumer, db, next);
    return ending;
  });
}

TEST_CASE("a handler that loses the transaction of a caller's session is never acknowledged") {
  run_table("session", [](TestDatabase& db, const GuardCase& each, std::string& next) {
    const auto sql = db.session();
    TxConsumer consumer(*sql, "guard", {.retry = {.max_attempts = 1}});
    const Ending ending = observe(db, consumer, each);
    // The handler may have broken the session; what it left must hold on any other.
    const auto other = db.session();
    TxConsumer again(*other, "guard");
    check_invariants(ending, again, db, next);
    return ending;
  });
}

}  // namespace txinbox::test
