// The transactions that can still add rows: how a relay on PostgreSQL learns of them, and how its read uses them.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>

#include "pool/pool_state.hpp"
#include "pool/session_provider.hpp"
#include "pool/with_session.hpp"
#include "support/capabilities.hpp"
#include "support/read_outbox.hpp"
#include "support/relay_kit.hpp"
#include "support/test_user.hpp"
#include "tables/outbox_message_table.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("only PostgreSQL tells which transactions have inserted messages") {
  const ReadOutbox outbox;
  CHECK(outbox.table.writers().has_value() == knows_writers());
}

TEST_CASE("a transaction that inserts a message is listed until others see its message" *
          doctest::skip(!knows_writers())) {
  const ReadOutbox outbox;
  const auto first = outbox.table.writers();
  CHECK(first->transactions.empty());

  const auto writer = outbox.db.session();
  *writer << "begin";
  *writer << "select count(*) from txinbox_outbox_message";  // a reader is no writer
  CHECK(outbox.table.writers()->transactions.empty());
  Outbox::add(*writer, {.topic = "t", .key = "k", .payload = "late"});
  const auto open = outbox.table.writers();
  CHECK(open->transactions.size() == 1);
  CHECK(open->server == first->server);

  // A message that was committed since then has a greater number.
  const auto later = outbox.db.session();
  *later << "begin";
  Outbox::add(*later, {.topic = "t", .key = "k", .payload = "later"});
  CHECK(outbox.table.writers()->transactions.size() == 2);
  *later << "commit";
  CHECK(outbox.table.writers()->transactions == open->transactions);

  *writer << "commit";
  CHECK(outbox.table.writers()->transactions.empty());
  CHECK(outbox.table.read({.parts = outbox.parts, .limit = 10}).size() == 2);
}

TEST_CASE("a prepared transaction is listed, and known as one that may have had another name" *
          doctest::skip(!on_postgresql())) {
  const ReadOutbox outbox;
  REQUIRE(outbox.db.text("show max_prepared_transactions") != "0");  // tests/servers.sh sets it
  const auto writer = outbox.db.session();
  *writer << "begin";
  Outbox::add(*writer, {.topic = "t", .payload = "x"});
  const auto open = outbox.table.writers();
  CHECK_FALSE(open->has_prepared);
  const std::string name = "'" + outbox.db.text("select current_schema()") + "'";
  *writer << "prepare transaction " + name;
  const auto prepared = outbox.table.writers();
  CHECK(prepared->has_prepared);
  REQUIRE(prepared->transactions.size() == 1);
  *writer << "commit prepared " + name;
  CHECK(outbox.table.writers()->transactions.empty());
}

TEST_CASE("an outbox whose numbers start over counts as one on another server" * doctest::skip(!on_postgresql())) {
  const ReadOutbox outbox;
  add(outbox.db, "k", {"1"});
  const std::int64_t first = outbox.table.writers()->server;
  CHECK(outbox.table.writers()->server == first);
  outbox.db.run("truncate txinbox_outbox_message restart identity");
  const std::int64_t second = outbox.table.writers()->server;
  CHECK(second != first);
  outbox.db.run("alter table txinbox_outbox_message alter column seq restart with 1");
  CHECK(outbox.table.writers()->server != second);
}

TEST_CASE("a relay whose user may not read pg_locks does not know the writers" * doctest::skip(!on_postgresql())) {
  const TestDatabase db;
  const User user(db);
  user.grant("usage on schema " + schema_of(db));
  user.grant("select on " + schema_of(db) + ".txinbox_outbox_message");
  user.grant("select on " + schema_of(db) + ".txinbox_schema");
  Pool pool = user.pool();
  detail::SessionProvider source(detail::PoolAccess::state(pool));
  const auto writers = [&] {
    return detail::with_session(
        source, {}, [](backend::Session& session) { return detail::OutboxMessageTable(session).writers(); });
  };
  CHECK(writers().has_value());
  db.run("revoke select on pg_locks from public");
  const auto without = writers();
  db.run("grant select on pg_locks to public");
  CHECK_FALSE(without.has_value());
}

TEST_CASE("a transaction that was rolled back is not listed" * doctest::skip(!knows_writers())) {
  const ReadOutbox outbox;
  const auto writer = outbox.db.session();
  *writer << "begin";
  Outbox::add(*writer, {.topic = "t", .payload = "x"});
  *writer << "rollback";
  CHECK(outbox.table.writers()->transactions.empty());
}

TEST_CASE("writers of another schema's outbox are not listed" * doctest::skip(!knows_writers())) {
  const ReadOutbox outbox, another;
  const auto writer = another.db.session();
  *writer << "begin";
  Outbox::add(*writer, {.topic = "t", .payload = "x"});
  CHECK(another.table.writers()->transactions.size() == 1);
  CHECK(outbox.table.writers()->transactions.empty());
  *writer << "rollback";
}

TEST_CASE("a read looks for earlier messages behind the watermark of the same server only" *
          doctest::skip(!knows_writers())) {
  const ReadOutbox outbox;
  add(outbox.db, "k", {"1", "2", "3"});
  const std::int64_t first = outbox.db.number("select min(seq) from txinbox_outbox_message");
  const std::int64_t server = outbox.table.writers()->server;
  const auto third_is_late = [&](const detail::Watermark& watermark) {
    const auto rows =
        outbox.table.read({.parts = outbox.parts, .after = first + 1, .limit = 10, .watermark = watermark});
    REQUIRE(rows.size() == 1);
    return rows[0].is_late;
  };
  CHECK(third_is_late({}));
  CHECK(third_is_late({.seq = first, .server = server}));
  CHECK_FALSE(third_is_late({.seq = first + 1, .server = server}));
  CHECK(third_is_late({.seq = first + 1, .server = server + 1}));
}

}  // namespace
}  // namespace txinbox::test
