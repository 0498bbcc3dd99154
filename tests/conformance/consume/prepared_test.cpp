// Statements that stay prepared on a connection, although other users remove them or change the tables.

#include <mysqld_error.h>

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <soci/mysql/soci-mysql.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "backend/mysql/many_keys.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "support/effects.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

/// Consumes a new key, a duplicate and a batch, on the only connection of the pool.
void check_consumes(TxConsumer& consumer, const std::string& key) {
  CHECK(consumer.consume({.business_key = key}, add_effect).outcome == Outcome::consumed);
  CHECK(consumer.consume({.business_key = key}, add_effect).outcome == Outcome::already_consumed);
  CHECK(outcomes(consumer.consume_batch(messages_of({key, key + "-2"}), add_effect)) ==
        Outcomes{Outcome::already_consumed, Outcome::consumed});
}

TEST_CASE("a handler may deallocate all prepared statements: its message and the next ones are consumed" *
          doctest::skip(!on_postgresql())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  int retries = 0;
  TxConsumer consumer(pool, "svc",
                      {.listeners = {on_event([&](const Event& e) { retries += e.type == EventType::retry; })}});
  const Handler deallocating = [](soci::session& sql, Delivery& d) {
    add_effect(sql, d);
    sql << "deallocate all";
  };
  check_consumes(consumer, "a");
  CHECK(consumer.consume({.business_key = "b"}, deallocating).outcome == Outcome::consumed);
  check_consumes(consumer, "c");
  CHECK(consumer.consume({.business_key = "d"}, deallocating).outcome == Outcome::consumed);
  CHECK(consumer.consume({.business_key = "d"}, add_effect).outcome == Outcome::already_consumed);
  CHECK(outcomes(consumer.consume_batch(messages_of({"e", "f"}), deallocating)) ==
        Outcomes{Outcome::consumed, Outcome::consumed});
  CHECK(outcomes(consumer.consume_batch(messages_of({"e", "g"}), deallocating)) ==
        Outcomes{Outcome::already_consumed, Outcome::consumed});
  check_consumes(consumer, "h");
  CHECK_THROWS((void)consumer.consume({.business_key = "i"}, [](soci::session& sql, Delivery&) {
    sql << "deallocate all";
    sql << "insert into no_such_table values (1)";
  }));
  check_consumes(consumer, "i");
  CHECK(retries == 1);  // after this, the connection keeps no statement prepared
}

TEST_CASE("a pool's connection on which another user ran DISCARD ALL can consume" * doctest::skip(!on_postgresql())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  check_consumes(consumer, "a");
  pool.acquire().session() << "discard all";
  check_consumes(consumer, "b");
  pool.acquire().session() << "discard all";
  CHECK(consumer.consume({.business_key = "b"}, add_effect).outcome == Outcome::already_consumed);
  CHECK(db.effects() == 4);
}

TEST_CASE("if prepared statements are lost between duplicates, a duplicate and a new key are still consumed correctly" *
          doctest::skip(!on_postgresql())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume({.business_key = "a"}, add_effect).outcome == Outcome::consumed);
  for (const char* next : {"a", "b", "c"}) {
    for (int i = 0; i < 5; ++i) {
      CHECK(consumer.consume({.business_key = "a"}, add_effect).outcome == Outcome::already_consumed);
    }
    pool.acquire().session() << "deallocate all";
    const Outcome expected = *next == 'a' ? Outcome::already_consumed : Outcome::consumed;
    CHECK(consumer.consume({.business_key = next}, add_effect).outcome == expected);
  }
  CHECK(db.effects() == 3);
}

TEST_CASE("prepared statements still work after the tables are flushed or altered" * doctest::skip(on_sqlite3())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  int retries = 0;
  TxConsumer consumer(pool, "svc",
                      {.listeners = {on_event([&](const Event& e) { retries += e.type == EventType::retry; })}});
  check_consumes(consumer, "first");
  int round = 0;
  for (const std::string change : {"flush tables", "alter table txinbox_consumed_message add column note varchar(10)",
                                   "alter table txinbox_consumed_message drop column note",
                                   "alter table txinbox_consumed_message alter column message_id set default null",
                                   "truncate table txinbox_consumed_message"}) {
    if (on_postgresql() && change == "flush tables") continue;
    CAPTURE(change);
    db.run(change);
    check_consumes(consumer, "k" + std::to_string(++round));
    // The first message after the next change is a duplicate.
    db.run(change == "flush tables"
               ? change
               : "analyze " + std::string(on_mysql() ? "table " : "") + "txinbox_consumed_message");
    CHECK(consumer.consume({.business_key = "k" + std::to_string(round)}, add_effect).outcome ==
          Outcome::already_consumed);
  }
  CHECK(retries == 0);
}

/// The columns of a row that the client writes.
std::string written(EffectDatabase& db, const std::string& key) {
  std::string row;
  const std::string concat = on_mysql() ? "concat_ws('|', state, message_id, hex(content_hash), lease_expires_at)"
                             : on_sqlite3()
                                 ? "state || '|' || coalesce(message_id, '') || '|' || hex(content_hash) || "
                                   "coalesce(lease_expires_at, '')"
                                 : "concat_ws('|', state, message_id, encode(content_hash, 'hex'), lease_expires_at)";
  *db.session() << "select " + concat + " from txinbox_consumed_message where business_key = '" + key + "'",
      soci::into(row);
  return row;
}

TEST_CASE("batches of one size have the same results and rows, whether their statements are prepared or not") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  for (int round = 0; round < 6; ++round) {
    CAPTURE(round);
    const std::string r = std::to_string(round);
    const std::string previous = "with-content" + std::to_string(round - 1);
    const std::vector<Message> batch = {
        {.business_key = "with-content" + r, .message_id = "id", .content = "content"},
        {.business_key = round == 0 ? "new" : previous, .content = round == 0 ? "other" : "content"},
        {.business_key = "plain" + r},
        {.business_key = "fails" + r}};
    const auto results = consumer.consume_batch(
        batch,
        [](soci::session& sql, Delivery& d) {
          add_effect(sql, d);
          if (d.message().business_key.starts_with("fails")) throw std::runtime_error("no");
        },
        OnFailure::skip);
    CHECK(outcomes(results) == Outcomes{Outcome::consumed, round == 0 ? Outcome::consumed : Outcome::already_consumed,
                                        Outcome::consumed, Outcome::failed});
    CHECK(written(db, "with-content" + r) == written(db, "with-content0"));
    CHECK(written(db, "plain" + r) == written(db, "plain0"));
    CHECK(db.claim_of("fails" + r) == "none");

    const auto at_once = consumer.consume_batch(messages_of({"a" + r, "b" + r, "c" + r, "plain" + r}),
                                                [](soci::session& sql, std::span<Delivery> all) {
                                                  for (Delivery& each : all) add_effect(sql, each);
                                                });
    CHECK(outcomes(at_once) ==
          Outcomes{Outcome::consumed, Outcome::consumed, Outcome::consumed, Outcome::already_consumed});
    CHECK(written(db, "c" + r) == written(db, "plain0"));
    CHECK(outcomes(consumer.consume_batch(messages_of({"x" + r, "y" + r}), add_effect)) ==
          Outcomes{Outcome::consumed, Outcome::consumed});  // another size
  }
  CHECK(db.effects() == 6 * 7 + 1);
}

TEST_CASE("on SQLite, prepared statements still work after the schema has changed" * doctest::skip(!on_sqlite3())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  check_consumes(consumer, "a");
  db.run("create table other (id integer)");
  check_consumes(consumer, "b");
  db.run("alter table txinbox_consumed_message add column note text");
  CHECK(consumer.consume({.business_key = "b"}, add_effect).outcome == Outcome::already_consumed);
  check_consumes(consumer, "c");
}

TEST_CASE("a compound statement that fails after its rows can run again, even if it then has no rows" *
          doctest::skip(!on_mariadb())) {
  const EffectDatabase db;
  const auto sql = db.session();
  backend::MysqlStatement statement;
  statement.prepare(backend::mysql_native(*backend::connection_of(*sql)),
                    "BEGIN NOT ATOMIC IF @rows THEN SELECT 'row'; END IF; IF @fail THEN SIGNAL SQLSTATE '45000'; END "
                    "IF; END");
  const auto run = [&](const char* settings) {
    *sql << settings;
    REQUIRE(statement.try_run() == 0);
    return statement.take_reply();
  };
  for (int i = 0; i < 2; ++i) {
    CHECK(run("set @rows = true, @fail = false").rows == std::vector<backend::MysqlRow>(1, {"row"}));
    CHECK(!run("set @rows = false, @fail = false").has_rows);
    CHECK_THROWS_AS((void)run("set @rows = true, @fail = true"), soci::mysql_soci_error);
    CHECK(!run("set @rows = false, @fail = false").has_rows);
    CHECK_THROWS_AS((void)run("set @rows = true, @fail = true"), soci::mysql_soci_error);
  }
}

TEST_CASE("each run of a prepared statement has its own values, whatever their lengths were before" *
          doctest::skip(!on_mysql())) {
  const EffectDatabase db;
  const auto sql = db.session();
  backend::MysqlStatement statement;
  statement.prepare(backend::mysql_native(*backend::connection_of(*sql)), "SELECT ?, ?, ?");
  const std::string short_copy(20, 'a');
  const std::string longest_copy(1024, 'b');
  const std::string in_place(1025, 'c');
  const std::string other_in_place(100'000, 'd');
  const std::string_view null;
  const std::vector<std::string_view> values = {
      "x", null,           in_place,   short_copy, "", longest_copy, in_place, "y", null,        in_place,
      "z", other_in_place, short_copy, in_place,   "", null,         null,     "x", longest_copy};
  for (std::size_t i = 0; i + 3 <= values.size(); ++i) {
    CAPTURE(i);
    backend::MysqlRow expected;
    for (std::size_t j = i; j < i + 3; ++j) {
      expected.push_back(values[j].data() == nullptr ? std::nullopt : std::optional<std::string>(values[j]));
    }
    REQUIRE(statement.try_run(std::span(values).subspan(i, 3)) == 0);
    CHECK(statement.take_reply().rows == std::vector<backend::MysqlRow>{expected});
  }
}

TEST_CASE("a prepared statement that failed has the right values in its next run" * doctest::skip(!on_mysql())) {
  const EffectDatabase db;
  const auto sql = db.session();
  *sql << "create table lengths (value varchar(10) not null primary key) engine = InnoDB";
  backend::MysqlStatement statement;
  statement.prepare(backend::mysql_native(*backend::connection_of(*sql)), "INSERT INTO lengths VALUES (?)");
  for (const std::string_view value : {std::string_view(), std::string_view("12345678901"), std::string_view("a")}) {
    (void)statement.try_run(std::span(&value, 1));
  }
  const std::string_view twice = "a";
  CHECK(statement.try_run(std::span(&twice, 1)) == ER_DUP_ENTRY);
  const std::string_view other = "b";
  CHECK(statement.try_run(std::span(&other, 1)) == 0);
  std::string found;
  *sql << "select group_concat(value order by value) from lengths", soci::into(found);
  CHECK(found == "a,b");
}

TEST_CASE("a statement for many keys is prepared for the second batch of one size, and only for that size" *
          doctest::skip(!on_mysql())) {
  const EffectDatabase db;
  const auto sql = db.session();
  MYSQL* connection = backend::mysql_native(*backend::connection_of(*sql));
  backend::MysqlManyKeysStatement statement;
  const auto sum = [&](std::size_t keys) -> std::string {
    backend::MysqlStatement* prepared = statement.prepared_for(connection, keys, [&] {
      std::string text = "SELECT 0";
      for (std::size_t i = 0; i < keys; ++i) text += " + CAST(? AS SIGNED)";
      return text;
    });
    if (prepared == nullptr) return "not prepared";
    REQUIRE(prepared->try_run(std::vector<std::string_view>(keys, "7")) == 0);
    return prepared->take_reply().rows.at(0).at(0).value();
  };
  CHECK(sum(2) == "not prepared");
  CHECK(sum(2) == "14");
  CHECK(sum(3) == "not prepared");
  CHECK(sum(2) == "14");
  CHECK(sum(3) == "not prepared");
  CHECK(sum(3) == "21");
  CHECK(sum(2) == "not prepared");
  statement.close();
  CHECK(sum(3) == "not prepared");
}

}  // namespace
}  // namespace txinbox::test
