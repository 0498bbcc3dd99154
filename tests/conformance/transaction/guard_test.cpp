// Each way in which a handler can lose the transaction, on each database: how `consume` ends, which rows are left, and
// what the next delivery returns. The test prints the table of docs/reference/guard.md.

#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/native.hpp>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/guard_cases.hpp"
#include "support/source_files.hpp"

namespace txinbox::test {
namespace {

/// Runs the case, and returns how the delivery ended and which rows it left.
///
/// `native`: the session whose connection the consumer works on, if the consumer knows only the connection.
Ending observe(EffectDatabase& db, TxConsumer& consumer, const GuardCase& each, soci::session* native) {
  const Message message{.business_key = "key"};
  Ending ending;
  const auto handle = [&](soci::session& sql) {
    sql << "insert into effect values ('before')";
    each.misbehave(sql, db);
    quietly([&] { sql << "insert into effect values ('after')"; });
  };
  try {
    const Result result = native == nullptr
                              ? consumer.consume(message, handle)
                              : consumer.consume(message, [&](NativeHandle, Delivery&) { handle(*native); });
    ending.how = std::string(to_string(result.outcome));
  } catch (const Error& e) {
    ending.how = std::string(to_string(e.code()));
  } catch (const HandlersOwnError&) {
    ending.how = "handler's error";
  } catch (const soci::soci_error&) {
    ending.how = "handler's error";
  }
  ending.claim = db.claim_of("key");
  ending.before = db.effects_of("before");
  ending.after = db.effects_of("after");
  return ending;
}

/// Checks what holds for every handler on every database. An acknowledged delivery has a claim and all of its SQL. A
/// delivery that is not acknowledged never leaves a consumed claim.
void check_next_delivery(const Ending& ending, TxConsumer& consumer, EffectDatabase& db) {
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
  if (ending.claim == "none") CHECK(second.outcome == Outcome::consumed);
  if (ending.claim == "torn") CHECK(second.outcome == Outcome::parked);
  if (ending.claim == "consumed") CHECK(second.outcome == Outcome::already_consumed);
  CHECK(db.effects() == runs);
}

/// The text for an ending in the table.
std::string describe(const Ending& ending) {
  if (ending.how == "consumed") return "consumed";
  std::string left = ending.claim == "torn" ? "parked from now on" : "runs again";
  if (ending.before != 0 && ending.after != 0) {
    left += ", all of its SQL stays";
  } else if (ending.before != 0) {
    left += ", the SQL before stays";
  } else if (ending.after != 0) {
    left += ", the SQL after stays";
  } else {
    left += ", all undone";
  }
  return ending.how + ": " + left;
}

/// The part of docs/reference/guard.md about the database under test.
std::string documented() {
  const std::string text = source_text("docs/reference/guard.md");
  const std::string heading = on_sqlite3() ? "## SQLite\n" : on_mysql() ? "## MariaDB and MySQL\n" : "## PostgreSQL\n";
  const std::size_t from = text.find(heading);
  REQUIRE(from != std::string::npos);
  return text.substr(from, text.find("\n## ", from) - from);
}

enum class Subject { pool, session, native_connection };

/// Runs one case on one kind of connection and returns its cell of the table.
std::string cell(const GuardCase& each, const Ending& expected, Subject subject) {
  EffectDatabase db;
  prepare_guard_case(db);
  Pool pool = db.pool(2);
  const auto sql = db.session();
  const ConsumerOptions once = {.retry = {.max_runs = 1}};
  const bool pooled = subject == Subject::pool;
  const bool native = subject == Subject::native_connection;
  TxConsumer consumer = pooled   ? TxConsumer(pool, "guard", once)
                        : native ? TxConsumer(native_handle(*sql), "guard", once)
                                 : TxConsumer(*sql, "guard", once);
  const Ending ending = observe(db, consumer, each, native ? sql.get() : nullptr);
  CHECK(ending.how == expected.how);
  CHECK(ending.claim == expected.claim);
  CHECK(ending.before == expected.before);
  CHECK(ending.after == expected.after);

  // The handler may have broken the caller's session. So the next delivery uses another one.
  const auto other = db.session();
  TxConsumer again(*other, "guard");
  check_next_delivery(ending, pooled ? consumer : again, db);
  return describe(ending);
}

}  // namespace

TEST_CASE("a handler that loses the transaction is never acknowledged, and the docs say what it leaves") {
  const std::string docs = documented();
  std::string table = "\n| the handler | in a pool | on a session |\n|---|---|---|\n";
  for (const GuardCase& each : guard_cases()) {
    if (!each.in_pool) continue;  // the database has no such statement
    CAPTURE(each.name);
    const std::string in_pool = cell(each, *each.in_pool, Subject::pool);
    const std::string on_session = cell(each, *each.in_session, Subject::session);
    // A handler must not free a native connection, because txinbox cannot detect this.
    if (!std::string_view(each.name).ends_with("reconnects") && each.name != "closes the session") {
      CHECK(cell(each, *each.in_session, Subject::native_connection) == on_session);
    }
    const std::string row = fmt::format("| {} | {} | {} |\n", each.name, in_pool, on_session);
    CHECK_MESSAGE(docs.find(row) != std::string::npos, "docs/reference/guard.md lacks the row: ", row);
    table += row;
  }
  fmt::print("{}", table);
}

TEST_CASE("the listener gets the event of a torn claim while no connection is held" *
          doctest::skip(refuses_foreign_commit())) {
  // On PostgreSQL no claim is torn.
  EffectDatabase db;
  const auto sql = db.session();
  // In a SQLite pool no claim is torn. So the test uses a caller's session there.
  Pool pool = db.pool(1);
  std::vector<std::string> heard;
  const ConsumerOptions options = {.listeners = {on_event([&](const Event& e) {
                                     heard.emplace_back(to_string(e.type));
                                     if (!only_pool_refuses_foreign_commit()) auto free = pool.acquire();
                                   })}};
  TxConsumer consumer =
      only_pool_refuses_foreign_commit() ? TxConsumer(*sql, "guard", options) : TxConsumer(pool, "guard", options);
  CHECK_THROWS_AS((void)consumer.consume({.business_key = "key"}, [](soci::session& s, Delivery&) { s.commit(); }),
                  Error);
  CHECK(heard == std::vector<std::string>{"torn", "failed"});
}

}  // namespace txinbox::test
