// txinbox::execute runs a statement, and keeps it prepared.

#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/soci/execute.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

struct NoteDatabase : EffectDatabase {
  NoteDatabase() {
    run("create table note (no varchar(64) not null primary key, amount bigint, rate double precision, text "
        "varchar(64))");
  }
};

TEST_CASE("a statement of a handler runs for each message with its own parameters") {
  for (const bool pooled : {true, false}) {
    CAPTURE(pooled);
    const NoteDatabase db;
    Pool pool = db.pool(1);
    const auto sql = db.session();
    TxConsumer consumer = pooled ? TxConsumer(pool, "svc") : TxConsumer(*sql, "svc");
    for (const int n : {1, 2, 3}) {
      const std::string key = "order" + std::to_string(n);
      const auto result = consumer.consume({.business_key = key}, [&](soci::session& session, Delivery& d) {
        std::optional<std::string> text;
        if (n == 2) text = "two";
        CHECK(execute(session, d, "insert into note values (:no, :amount, :rate, :text)", key, n, 0.5 * n, text) == 1);
      });
      CHECK(result.outcome == consumed);
    }
    CHECK(db.number("select count(*) from note where amount = 2 and rate = 1.0 and text = 'two'") == 1);
    CHECK(db.number("select count(*) from note where text is null") == 2);
    (void)consumer.consume({.business_key = "all"}, [](soci::session& session, Delivery& d) {
      CHECK(execute(session, d, "update note set amount = amount + 1") == 3);
      CHECK(execute(session, d, "delete from note where no = :no", "no such note") == 0);
    });
    CHECK(db.number("select sum(amount) from note") == 9);
  }
}

TEST_CASE("the next call with the same text may have parameters of other types") {
  const NoteDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const char* const insert = "insert into note values (:no, :amount, 1, null)";
  (void)consumer.consume({.business_key = "a"}, [&](soci::session& sql, Delivery& d) {
    execute(sql, d, insert, "a", 1);
    execute(sql, d, insert, std::string("b"), std::optional<long long>());
    execute(sql, d, insert, std::string_view("c"), 3ULL);
  });
  CHECK(db.number("select count(*) from note where amount is null") == 1);
  CHECK(db.number("select sum(amount) from note") == 4);
}

TEST_CASE("a statement that failed can be run again") {
  const NoteDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto add = [](soci::session& sql, Delivery& d) {
    execute(sql, d, "insert into note values (:no, 0, 0, null)", d.message().business_key.substr(0, 1));
  };
  CHECK(consumer.consume({.business_key = "a1"}, add).outcome == consumed);
  CHECK_THROWS_AS((void)consumer.consume({.business_key = "a2"}, add), soci::soci_error);
  CHECK(consumer.consume({.business_key = "b1"}, add).outcome == consumed);
  // This handler catches the error. On PostgreSQL it needs a savepoint for this.
  (void)consumer.consume({.business_key = "c1"}, [&](soci::session& sql, Delivery& d) {
    for (const char* no : {"a", "c"}) {
      sql << "savepoint mine";
      try {
        execute(sql, d, "insert into note values (:no, 0, 0, null)", no);
        sql << "release savepoint mine";
      } catch (const soci::soci_error&) {
        sql << "rollback to savepoint mine";
      }
    }
  });
  CHECK(db.number("select count(*) from note") == 3);
}

TEST_CASE("a statement that the database would run only in part is refused, and its message rolled back") {
  const NoteDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto refuses = [&]<class Refusal>(std::type_identity<Refusal>, const std::string& text, auto... parameters) {
    CAPTURE(text);
    const auto run = [&](soci::session& sql, Delivery& d) {
      sql << "insert into note values ('before', 0, 0, null)";
      execute(sql, d, text, parameters...);
    };
    CHECK_THROWS_AS((void)consumer.consume({.business_key = "k"}, run), Refusal);
    CHECK(db.number("select count(*) from note") == 0);
  };
  constexpr std::type_identity<soci::soci_error> of_database;
  refuses(of_database, "insert into note values (:no, 0, 0, null)");
  refuses(of_database, "insert into note values (:no, :amount, 0, null)", "a");
  refuses(of_database, "insert into note values ('a', 0, 0, null); insert into note values ('b', 0, 0, null)");
  refuses(of_database, "insert into note values ('a', 0, 0, null); no statement");
  const std::string one_placeholder = "insert into note values (:no, 0, 0, null)";
  if (on_sqlite3()) {
    refuses(of_database, one_placeholder, "a", 1);
  } else {
    refuses(std::type_identity<std::out_of_range>(), one_placeholder, "a", 1);  // SOCI itself finds it
  }
  const auto one = [](soci::session& sql, Delivery& d) {
    CHECK(execute(sql, d, "insert into note values ('c', 0, 0, null);  \n") == 1);
  };
  CHECK(consumer.consume({.business_key = "k"}, one).outcome == consumed);
}

TEST_CASE("a refused statement is named without its values" * doctest::skip(!on_sqlite3())) {
  const NoteDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto text_of = [&](const std::string& text) {
    try {
      (void)consumer.consume({.business_key = "k"}, [&](soci::session& sql, Delivery& d) { execute(sql, d, text); });
    } catch (const soci::soci_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(
      text_of("insert into note values ('secret', :amount, :rate, null)")
          .find(
              "the statement \"insert into note values (...\" has another number of placeholders (2) than execute has "
              "parameters (0); pass one for each") != std::string::npos);
  CHECK(
      text_of("delete from note; -- all\n delete from note")
          .find("the statement \"delete from note; -- all\n delete from note\" has another statement behind it, which "
                "SQLite would not run; call execute for each") != std::string::npos);
}

TEST_CASE("a connection keeps a limited number of statements prepared") {
  const NoteDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  (void)consumer.consume({.business_key = "many"}, [&](soci::session& sql, Delivery& d) {
    for (int i = 0; i < 250; ++i) {
      execute(sql, d, "insert into note values (:no, " + std::to_string(i) + ", 0, null)", std::to_string(i));
    }
  });
  CHECK(db.number("select count(*) from note") == 250);
  if (on_postgresql()) {
    const auto connection = pool.acquire();
    long long kept = 0;
    *connection << "select count(*) from pg_prepared_statements where statement like 'insert into note%'",
        soci::into(kept);
    CHECK(kept <= 100);
    CHECK(kept > 0);
  }
}

TEST_CASE("on a caller's connection to PostgreSQL, no statement stays prepared, because a pooler may be in between" *
          doctest::skip(!on_postgresql())) {
  const NoteDatabase db;
  const auto session = db.session();
  TxConsumer consumer(*session, "svc");
  const auto prepared = [](soci::session& sql) {
    long long count = 0;
    sql << "select count(*) from pg_prepared_statements where statement like 'insert into note%'", soci::into(count);
    return count;
  };
  const auto results = consumer.consume_batch(messages_of({"a", "b"}), [&](soci::session& sql, Delivery& d) {
    CHECK_FALSE(d.keeps_statements());
    const std::optional<std::string> nothing;
    CHECK(execute(sql, d, "insert into note values (:no, :n, 0.5, :text)", d.message().business_key, 1, nothing) == 1);
    CHECK(prepared(sql) == 0);
  });
  for (const Result& each : results) CHECK(each.outcome == Outcome::consumed);
  CHECK(db.number("select count(*) from note where text is null") == 2);
}

}  // namespace
}  // namespace txinbox::test
