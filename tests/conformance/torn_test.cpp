// Claims that the handler committed itself, where something else goes wrong as well: they are marked
// as torn sooner or later, an honest claim never is, and no session is left in a transaction.

#include <sys/socket.h>

#include <chrono>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/mysql/soci-mysql.h>
#include <soci/postgresql/soci-postgresql.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using std::chrono::milliseconds;

const Message order{.business_key = "order123"};
const Message kanji{.business_key = "鍵"};

/// Locks every claim, so that none can be marked until the session rolls back.
void lock_claims(soci::session& sql) {
  sql.begin();
  int rows = 0;
  sql << "select count(*) from (select 1 from txinbox_consumed_message for update) x", soci::into(rows);
}

TEST_CASE("a mark that times out leaves no transaction open on a caller's session") {
  if (on_sqlite3()) return;
  EffectDatabase db;
  const auto sql = db.session();
  *sql << (on_mysql() ? "set innodb_lock_wait_timeout = 1" : "set lock_timeout = '200ms'");
  const auto other = db.session();
  TxConsumer consumer(*sql, "svc", {.retry = {.max_attempts = 1}});
  CHECK(thrown_by([&] {
          (void)consumer.consume(order, [&](soci::session& s, Delivery& d) {
            add_effect(s, d);
            s.commit();
            lock_claims(*other);
          });
        }) == "transaction_lost");
  other->rollback();
  *sql << "insert into effect values ('the caller''s own')";
  CHECK(db.effects_of("the caller''s own") == 1);
  CHECK(consumer.consume({.business_key = "next"}, add_effect).outcome == Outcome::consumed);
}

TEST_CASE("a mark that times out leaves nothing open on a pool's connection, and is made by the next run") {
  if (!on_mysql()) return;
  EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 1, .lock_timeout = milliseconds(1000)});
  const auto other = db.session();
  TxConsumer consumer(pool, "svc", {.retry = {.max_attempts = 2}, .observer = [&](const Event& e) {
                                      if (e.type != EventType::retry) return;
                                      auto connection = pool.acquire();
                                      connection.session() << "insert into effect values ('another user')";
                                      other->rollback();
                                    }});
  const Result result = consumer.consume(order, [&](soci::session& s, Delivery& d) {
    add_effect(s, d);
    s.commit();
    lock_claims(*other);
    throw soci::mysql_soci_error("a deadlock, say", 1213);
  });
  CHECK(result.outcome == Outcome::parked);
  CHECK(db.effects_of("another user") == 1);
  CHECK(db.text("select state from txinbox_consumed_message") == "torn");
}

TEST_CASE("a handler's own COMMIT that ends after its connection was lost is not taken for a duplicate") {
  if (!on_postgresql()) return;
  EffectDatabase db;
  db.run(
      "create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.7); return null; end $$");
  db.run(
      "create constraint trigger slow after insert on effect deferrable initially deferred for each row execute "
      "function slow()");
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc");
  const Result result = consumer.consume(order, [&](soci::session& s, Delivery& d) {
    add_effect(s, d);
    auto* pg = static_cast<soci::postgresql_session_backend*>(s.get_backend())->conn_;
    PQsendQuery(pg, "COMMIT");
    PQflush(pg);
    std::this_thread::sleep_for(milliseconds(100));
    shutdown(PQsocket(pg), SHUT_RDWR);
    add_effect(s, d);
  });
  CHECK(result.outcome == Outcome::parked);
  CHECK(db.text("select state from txinbox_consumed_message") == "torn");
}

TEST_CASE("a handler that changes the client's encoding loses neither its result nor its mark") {
  if (!on_postgresql()) return;
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer pooled(pool, "pooled");
  (void)pooled.consume(kanji, [](soci::session& s, Delivery& d) {
    s << "set client_encoding to 'LATIN1'";
    d.store("receipt");
  });
  CHECK(pooled.consume(kanji, add_effect).stored == "receipt");

  const auto sql = db.session();
  TxConsumer own(*sql, "own");
  CHECK(thrown_by([&] {
          (void)own.consume(kanji, [](soci::session& s, Delivery&) {
            s << "set client_encoding to 'LATIN1'";
            s.commit();
          });
        }) == "transaction_lost");
  *sql << "set client_encoding to 'UTF8'";
  CHECK(own.consume(kanji, add_effect).outcome == Outcome::parked);
}

TEST_CASE("a Transaction that has ended takes no further claim, and an honest claim stays consumed") {
  EffectDatabase db;
  const auto sql = db.session();
  {
    Transaction transaction(*sql);
    CHECK(transaction.claim("svc", order) == Claim::claimed);
    transaction.commit();
    CHECK(thrown_by([&] { transaction.claim("svc", {.business_key = "later"}); }) == "transaction_lost");
    transaction.rollback();
  }
  CHECK(db.text("select state from txinbox_consumed_message") == "consumed");
  Transaction rolled_back(*sql);
  CHECK(rolled_back.claim("svc", {.business_key = "other"}) == Claim::claimed);
  rolled_back.rollback();
  CHECK(thrown_by([&] { rolled_back.claim("svc", {.business_key = "other"}); }) == "transaction_lost");
  CHECK(db.claims() == 1);
}

TEST_CASE("the text of transaction_lost says what stays and what to do") {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  const auto text_of = [&](const char* statement) {
    try {
      (void)consumer.consume({.business_key = statement}, [&](soci::session& s, Delivery&) { s << statement; });
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(text_of("commit").find("txinbox forget") != std::string::npos);
  CHECK(text_of("rollback").find("runs again") != std::string::npos);
}

}  // namespace
}  // namespace txinbox::test
