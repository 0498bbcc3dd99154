// Handlers that leave something open on the handle of their client library: results that they have not read, a COPY,
// the pipeline mode. The message must end, its SQL must commit with its claim or not at all, and the next message must
// run.

#include <libpq-fe.h>
#include <mysql.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/native.hpp>
#include <txinbox/soci/execute.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

/// One way to leave a handle.
struct Way {
  std::string name;
  std::function<void(const NativeHandle&)> leave;
  enum class End { lost, loses_connection, harmless } end = End::lost;
};

void ignore(PGresult* result) { PQclear(result); }

std::vector<Way> postgresql_ways() {
  const auto with = [](auto leave) { return [leave](const NativeHandle& handle) { leave(handle.postgresql()); }; };
  return {
      {"a COPY to the server", with([](PGconn* pg) { ignore(PQexec(pg, "copy effect from stdin")); })},
      {"a COPY to the server, in a row", with([](PGconn* pg) {
         ignore(PQexec(pg, "copy effect from stdin"));
         PQputCopyData(pg, "copied\nhalf", 11);
       })},
      {"a COPY to the server, with more than libpq's buffer", with([](PGconn* pg) {
         ignore(PQexec(pg, "copy effect from stdin"));
         const std::string row = std::string(100, 'x') + "\n";
         for (int i = 0; i < 1000; ++i) PQputCopyData(pg, row.data(), static_cast<int>(row.size()));
       })},
      {"a COPY from the server", with([](PGconn* pg) { ignore(PQexec(pg, "copy (select 1) to stdout")); })},
      {"a COPY of many rows from the server",
       with([](PGconn* pg) { ignore(PQexec(pg, "copy (select generate_series(1, 1000000)) to stdout")); }),
       Way::End::loses_connection},
      {"unread results", with([](PGconn* pg) { PQsendQuery(pg, "select 1; select 2"); })},
      {"the single-row mode", with([](PGconn* pg) {
         PQsendQuery(pg, "select generate_series(1, 1000)");
         PQsetSingleRowMode(pg);
         ignore(PQgetResult(pg));
       })},
      {"the pipeline mode", with([](PGconn* pg) { PQenterPipelineMode(pg); }), Way::End::harmless},
      {"a command in the pipeline mode", with([](PGconn* pg) {
         PQenterPipelineMode(pg);
         PQsendQueryParams(pg, "insert into effect values ('pipelined')", 0, nullptr, nullptr, nullptr, nullptr, 0);
       })},
      {"unread results in the pipeline mode", with([](PGconn* pg) {
         PQenterPipelineMode(pg);
         for (int i = 0; i < 3; ++i) {
           PQsendQueryParams(pg, "select 1", 0, nullptr, nullptr, nullptr, nullptr, 0);
           PQpipelineSync(pg);
         }
       })},
      {"an aborted pipeline", with([](PGconn* pg) {
         PQenterPipelineMode(pg);
         PQsendQueryParams(pg, "select no_such_column", 0, nullptr, nullptr, nullptr, nullptr, 0);
         PQsendQueryParams(pg, "select 1", 0, nullptr, nullptr, nullptr, nullptr, 0);
         PQpipelineSync(pg);
         ignore(PQgetResult(pg));
       })},
  };
}

std::vector<Way> mysql_ways() {
  const auto with = [](auto leave) { return [leave](const NativeHandle& handle) { leave(handle.mysql()); }; };
  return {
      {"an unread result", with([](MYSQL* mysql) { mysql_query(mysql, "select n from seq"); })},
      {"unread rows of a prepared statement", with([](MYSQL* mysql) {
         static std::vector<std::unique_ptr<MYSQL_STMT, decltype(&mysql_stmt_close)>> kept;
         const std::string sql = "select n from seq";
         kept.emplace_back(mysql_stmt_init(mysql), mysql_stmt_close);
         mysql_stmt_prepare(kept.back().get(), sql.data(), sql.size());
         mysql_stmt_execute(kept.back().get());
         mysql_stmt_fetch(kept.back().get());
       })},
  };
}

using Statement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

/// The statements of SQLite that are left open.
std::vector<Statement>& left_open() {
  static std::vector<Statement> all;
  return all;
}

/// Finalizes them before the connection is closed. SQLite does not close a connection that has statements.
struct FinalizesStatements {
  FinalizesStatements() = default;
  ~FinalizesStatements() { left_open().clear(); }
  FinalizesStatements(const FinalizesStatements&) = delete;
  FinalizesStatements& operator=(const FinalizesStatements&) = delete;
};

std::vector<Way> sqlite3_ways() {
  return {
      {"a statement that was not reset",
       [](const NativeHandle& handle) {
         sqlite3_stmt* statement = nullptr;
         sqlite3_prepare_v2(handle.sqlite3(), "select n from seq", -1, &statement, nullptr);
         left_open().emplace_back(statement, sqlite3_finalize);
         sqlite3_step(statement);
       },
       Way::End::harmless},
  };
}

std::vector<Way> ways() { return on_postgresql() ? postgresql_ways() : on_mysql() ? mysql_ways() : sqlite3_ways(); }

/// How a delivery ends: the name of its outcome or of its error code, or "threw" for another exception.
std::string outcome_of(TxConsumer& consumer, const std::string& key, const Handler& handler) {
  try {
    return std::string(to_string(consumer.consume({.business_key = key}, handler).outcome));
  } catch (const Error& error) {
    return std::string(to_string(error.code()));
  } catch (const std::exception&) {
    return "threw";
  }
}

void add_key(soci::session& sql, Delivery& delivery) { add_effect(sql, delivery); }

/// Each key that the consumer has taken has its effect once, and no other key has one.
void check_effects(const EffectDatabase& db, const std::vector<std::string>& consumed) {
  CHECK(db.effects() == static_cast<long long>(consumed.size()));
  for (const std::string& key : consumed) {
    CAPTURE(key);
    CHECK(db.number("select count(*) from effect where id = '" + key + "'") == 1);
  }
}

/// `can_go_on`: whether the connection can be used afterwards.
void check_way(const Way& way, const EffectDatabase& db, TxConsumer& consumer, bool can_go_on) {
  CAPTURE(way.name);
  db.run("delete from effect");
  std::vector<std::string> consumed;
  const auto expect = [&](const std::string& key, const std::string& outcome) {
    if (outcome == "consumed") consumed.push_back(key);
  };
  const std::string left = outcome_of(consumer, "left", [&](soci::session& sql, Delivery& delivery) {
    add_key(sql, delivery);
    way.leave(native_handle(sql));
  });
  expect("left", left);
  if (can_go_on) {
    const std::string next = outcome_of(consumer, "next", add_key);
    CHECK(next == "consumed");
    expect("next", next);
  }
  expect("thrown", outcome_of(consumer, "thrown", [&](soci::session& sql, Delivery& delivery) {
           add_key(sql, delivery);
           way.leave(native_handle(sql));
           throw std::runtime_error("the handler fails");
         }));
  CHECK(left == (way.end == Way::End::harmless ? "consumed" : "transaction_lost"));
  CHECK(std::ranges::find(consumed, "thrown") == consumed.end());
  check_effects(db, consumed);
  if (!can_go_on) return;
  const auto results = consumer.consume_batch(
      messages_of({"first", "second", "third"}),
      [&](soci::session& sql, Delivery& delivery) {
        add_key(sql, delivery);
        if (delivery.message().business_key == "second") way.leave(native_handle(sql));
      },
      OnFailure::skip);
  const std::vector<std::string> keys = {"first", "second", "third"};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (results.at(i).outcome == Outcome::consumed) consumed.push_back(keys[i]);
  }
  for (const std::string& key : {std::string("left"), std::string("second"), std::string("last")}) {
    // The server can notice late that a connection is lost, and holds the lock on the key until then.
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    std::string outcome;
    do {
      outcome = outcome_of(consumer, key, add_key);
    } while (!outcome.ends_with("consumed") && std::chrono::steady_clock::now() < give_up);
    CHECK_MESSAGE(outcome.ends_with("consumed"), key, " ends with ", outcome);
    if (outcome == "consumed") consumed.push_back(key);
  }
  check_effects(db, consumed);
}

void prepare(const EffectDatabase& db) {
  db.run("create table seq (n integer not null)");
  for (int i = 0; i < 3; ++i) db.run("insert into seq values (" + std::to_string(i) + ")");
}

TEST_CASE("whatever a handler leaves open on its handle, the message ends, and the pool's next one runs") {
  EffectDatabase db;
  prepare(db);
  int number = 0;
  for (const Way& way : ways()) {
    Pool pool = db.pool(1);
    const FinalizesStatements finalizes;
    TxConsumer consumer(pool, "pool" + std::to_string(++number));
    check_way(way, db, consumer, true);
  }
}

TEST_CASE("whatever a handler leaves open on the caller's connection, the message ends") {
  EffectDatabase db;
  prepare(db);
  int number = 0;
  for (const Way& way : ways()) {
    const auto session = db.session();
    const FinalizesStatements finalizes;
    TxConsumer consumer(*session, "session" + std::to_string(++number));
    // The next message is refused until the caller has read the result.
    const bool is_refused = on_mysql() || way.end == Way::End::loses_connection;
    check_way(way, db, consumer, !is_refused);
  }
}

TEST_CASE("whatever is left open on a connection that is given back, the pool's next message runs") {
  EffectDatabase db;
  prepare(db);
  int number = 0;
  for (const Way& way : ways()) {
    CAPTURE(way.name);
    Pool pool = db.pool(1);
    const FinalizesStatements finalizes;
    {
      auto connection = pool.acquire();
      way.leave(native_handle(connection.session()));
    }
    TxConsumer consumer(pool, "given" + std::to_string(++number));
    CHECK(outcome_of(consumer, "next", add_key) == "consumed");
  }
  CHECK(db.effects_of("next") == number);
}

TEST_CASE("a handler of a set that leaves its handle open loses no message and doubles none") {
  EffectDatabase db;
  prepare(db);
  int number = 0;
  for (const Way& way : ways()) {
    CAPTURE(way.name);
    db.run("delete from effect");
    Pool pool = db.pool(1);
    const FinalizesStatements finalizes;
    TxConsumer consumer(pool, "set" + std::to_string(++number));
    const BatchHandler leaves = [&](soci::session& sql, std::span<Delivery> deliveries) {
      for (Delivery& each : deliveries) add_key(sql, each);
      way.leave(native_handle(sql));
    };
    std::vector<std::string> consumed;
    for (int time = 0; time < 2; ++time) {
      try {
        const auto results = consumer.consume_batch(messages_of({"a", "b"}), leaves, OnFailure::skip);
        for (std::size_t i = 0; i < results.size(); ++i) {
          if (results[i].outcome == Outcome::consumed) consumed.push_back(i == 0 ? "a" : "b");
        }
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the effects show what has happened
      }
    }
    check_effects(db, consumed);
  }
}

TEST_CASE("txinbox::execute refuses a COPY that needs the client" * doctest::skip(!on_postgresql())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  for (const std::string sql : {"copy effect from stdin", "copy effect to stdout"}) {
    const Handler copies = [&](soci::session& session, Delivery& delivery) { execute(session, delivery, sql); };
    CAPTURE(sql);
    CHECK(outcome_of(consumer, "k", copies) != "consumed");
  }
  CHECK(outcome_of(consumer, "k", add_key) == "consumed");
  CHECK(db.effects() == 1);
}

}  // namespace
}  // namespace txinbox::test
