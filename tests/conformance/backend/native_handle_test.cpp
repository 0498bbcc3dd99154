// Handlers that use the client library's own connection instead of SOCI's session.

#include <libpq-fe.h>
#include <mysql.h>
#include <sqlite3.h>

#include <functional>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/native.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

/// Runs one statement without SOCI. A failure throws an exception that is not SOCI's.
void run_natively(soci::session& sql, const std::string& statement) {
  const NativeHandle handle = native_handle(sql);
  bool done = false;
  if (handle.database() == "postgresql") {
    PGresult* result = PQexec(handle.postgresql(), statement.c_str());
    done = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
  } else if (handle.database() == "mysql") {
    done = mysql_query(handle.mysql(), statement.c_str()) == 0;
  } else {
    done = sqlite3_exec(handle.sqlite3(), statement.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  }
  if (!done) throw std::runtime_error("the statement failed");
}

void add_natively(soci::session& sql, Delivery& delivery) {
  run_natively(sql, "insert into effect values ('" + delivery.message().business_key + "')");
}

TEST_CASE("the SQL of a handler on the native connection commits with the claim") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  auto session = db.session();
  TxConsumer on_pool(pool, "pool");
  TxConsumer on_session(*session, "session");
  for (TxConsumer* consumer : {&on_pool, &on_session}) {
    db.run("delete from effect");
    CHECK(consumer->consume({.business_key = "k1"}, add_natively).outcome == Outcome::consumed);
    CHECK(consumer->consume({.business_key = "k1"}, add_natively).outcome == Outcome::already_consumed);
    CHECK(db.effects() == 1);
    CHECK_THROWS_AS((void)consumer->consume({.business_key = "k2"},
                                            [](soci::session& sql, Delivery& delivery) {
                                              add_natively(sql, delivery);
                                              throw std::runtime_error("after the write");
                                            }),
                    std::runtime_error);
    CHECK(db.effects() == 1);
    const auto results = consumer->consume_batch(messages_of({"k3", "k4"}), add_natively);
    CHECK(results[1].outcome == Outcome::consumed);
    CHECK(db.effects() == 3);
  }
}

TEST_CASE("a message is not acknowledged if its handler ends the transaction on the native connection") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  for (const std::string statement : {"COMMIT", "ROLLBACK"}) {
    CAPTURE(statement);
    CHECK(thrown_by([&] {
            (void)consumer.consume({.business_key = statement}, [&](soci::session& sql, Delivery& delivery) {
              add_natively(sql, delivery);
              try {
                run_natively(sql, statement);
              } catch (const std::runtime_error&) {  // PostgreSQL and SQLite refuse the COMMIT
              }
            });
          }) == "transaction_lost");
  }
}

TEST_CASE("a native handle of another database, or of a closed session, is refused") {
  const EffectDatabase db;
  auto session = db.session();
  const NativeHandle handle = native_handle(*session);
  int refused = 0;
  for (const auto& ask : {std::function<void()>([&] { (void)handle.postgresql(); }),
                          {[&] { (void)handle.mysql(); }},
                          {[&] { (void)handle.sqlite3(); }}}) {
    try {
      ask();
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::invalid_argument);
      ++refused;
    }
  }
  CHECK(refused == 2);
  session->close();
  CHECK(thrown_by([&] { (void)native_handle(*session); }) == "unsupported_database");
}

}  // namespace
}  // namespace txinbox::test
