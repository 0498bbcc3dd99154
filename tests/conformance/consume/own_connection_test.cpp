// Statements that stay prepared on the service's own connection, also if the connection loses them.

#include <mysql.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/native.hpp>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/proxy.hpp"
#include "support/test_database.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

/// Consumes a new key, a duplicate, further duplicates, which are read before they are inserted, and a batch.
void check_consumes(TxConsumer& consumer, const std::string& key) {
  CHECK(consumer.consume({.business_key = key}, add_effect).outcome == Outcome::consumed);
  for (int i = 0; i < 5; ++i) {
    CHECK(consumer.consume({.business_key = key}, add_effect).outcome == Outcome::already_consumed);
  }
  CHECK(outcomes(consumer.consume_batch(messages_of({key, key + "-2"}), add_effect)) ==
        Outcomes{Outcome::already_consumed, Outcome::consumed});
}

/// The service resets its connection.
void reset(soci::session& sql) {
  if (on_postgresql()) {
    sql << "discard all";
  } else {
    REQUIRE(mysql_reset_connection(native_handle(sql).mysql()) == 0);
  }
}

/// A proxy resets the connection of the server, and the client library does not know of it.
void reset_unnoticed(soci::session& sql) {
  MYSQL* db = native_handle(sql).mysql();
  REQUIRE(mysql_get_ssl_cipher(db) == nullptr);
  const int socket = static_cast<int>(mysql_get_socket(db));
  const std::array<char, 5> reset_connection = {1, 0, 0, 0, 0x1F};
  REQUIRE(send(socket, reset_connection.data(), reset_connection.size(), 0) == 5);
  std::array<char, 1024> reply{};
  REQUIRE(recv(socket, reply.data(), reply.size(), 0) > 4);
  REQUIRE(reply[4] == 0);  // OK
}

TEST_CASE("a service may reset its connection between two messages" * doctest::skip(on_sqlite3())) {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  check_consumes(consumer, "a");
  for (const char* key : {"b", "c", "d"}) {
    reset(*sql);
    CHECK(consumer.consume({.business_key = "a"}, add_effect).outcome == Outcome::already_consumed);
    check_consumes(consumer, key);
    reset(*sql);
    check_consumes(consumer, std::string(key) + "-new");
  }
  CHECK(db.effects() == 14);
}

TEST_CASE("a proxy may reset the service's connection between two messages" * doctest::skip(!on_mysql())) {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  check_consumes(consumer, "a");
  for (const char* key : {"b", "c", "d"}) {
    reset_unnoticed(*sql);
    CHECK(consumer.consume({.business_key = "a"}, add_effect).outcome == Outcome::already_consumed);
    reset_unnoticed(*sql);
    check_consumes(consumer, key);
    reset_unnoticed(*sql);
    check_consumes(consumer, std::string(key) + "-new");
  }
  CHECK(db.effects() == 14);
}

TEST_CASE("a handler that resets the service's connection is not acknowledged, and its message runs again" *
          doctest::skip(!on_mysql())) {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc", {.retry = {.max_runs = 1}});
  check_consumes(consumer, "a");
  for (const auto& lose : {reset, reset_unnoticed}) {
    const std::string lost = thrown_by([&] {
      (void)consumer.consume({.business_key = "b"}, [&](soci::session& s, Delivery& d) {
        add_effect(s, d);
        lose(s);
      });
    });
    CHECK(lost == "transaction_lost");
    CHECK(db.claim_of("b") == "none");
  }
  check_consumes(consumer, "b");
  CHECK(db.effects() == 4);
}

TEST_CASE("a handler on the service's own connection may deallocate all prepared statements" *
          doctest::skip(!on_postgresql())) {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  const Handler deallocating = [](soci::session& s, Delivery& d) {
    add_effect(s, d);
    s << "deallocate all";
  };
  check_consumes(consumer, "a");
  CHECK(consumer.consume({.business_key = "b"}, deallocating).outcome == Outcome::consumed);
  check_consumes(consumer, "c");
  CHECK(consumer.consume({.business_key = "d"}, deallocating).outcome == Outcome::consumed);
  CHECK(db.effects() == 6);
}

TEST_CASE("many consumers on one connection leave no statements behind, or share them" * doctest::skip(on_sqlite3())) {
  EffectDatabase db;
  const auto sql = db.session();
  const auto prepared = [&] {
    long long count = 0;
    if (on_postgresql()) {
      *sql << "select count(*) from pg_prepared_statements where name like 'txinbox_%'", soci::into(count);
    } else {
      // Of this session only: other tests use the server, too.
      std::string name;
      long long closed = 0;
      *sql << "show session status like 'Com_stmt_prepare'", soci::into(name), soci::into(count);
      *sql << "show session status like 'Com_stmt_close'", soci::into(name), soci::into(closed);
      count -= closed;
    }
    return count;
  };
  const long long before = prepared();
  std::optional<long long> during;
  for (const char* name : {"first", "second", "third"}) {
    TxConsumer consumer(*sql, name);
    check_consumes(consumer, name);
    if (!during) during = prepared();
    CHECK(prepared() == *during);
  }
  CHECK(prepared() == (on_postgresql() ? *during : before));
  CHECK(*during > before);
}

TEST_CASE("the end of a consumer leaves a result that the service is reading" * doctest::skip(!on_mysql())) {
  EffectDatabase db;
  const auto sql = db.session();
  MYSQL* connection = native_handle(*sql).mysql();
  std::optional<TxConsumer> consumer(std::in_place, *sql, "svc");
  check_consumes(*consumer, "a");
  REQUIRE(mysql_query(connection, "select 1 union all select 2 union all select 3") == 0);
  MYSQL_RES* result = mysql_use_result(connection);
  REQUIRE(mysql_fetch_row(result) != nullptr);
  consumer.reset();
  int rows = 1;
  while (mysql_fetch_row(result) != nullptr) ++rows;
  mysql_free_result(result);
  CHECK(rows == 3);
}

TEST_CASE("settings that change on the service's own connection are seen although its statements stay prepared" *
          doctest::skip(!on_mysql())) {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  check_consumes(consumer, "a");
  *sql << "set sql_mode = ''";
  for (const char* key : {"a", "b"}) {  // a duplicate, and a new key
    CHECK(thrown_by([&] { (void)consumer.consume({.business_key = key}, add_effect); }) == "unsafe_connection");
  }
  *sql << "set sql_mode = 'STRICT_ALL_TABLES'";
  check_consumes(consumer, "b");
  *sql << "start transaction";
  for (const char* key : {"a", "c"}) {
    CHECK(thrown_by([&] { (void)consumer.consume({.business_key = key}, add_effect); }) == "transaction_open");
  }
  sql->rollback();
  *sql << "set session transaction isolation level read uncommitted";
  const auto other = db.session();
  *other << "start transaction";
  *other << "insert into txinbox_consumed_message (consumer, business_key, state, attempt_token, consumed_at) "
            "values ('svc', 'c', 'consumed', x'00000000000000000000000000000000', utc_timestamp(6))";
  *sql << "set innodb_lock_wait_timeout = 1";
  TxConsumer once(*sql, "svc", {.retry = {.max_runs = 1}});
  check_consumes(once, "d");
  for (int i = 0; i < 4; ++i) (void)once.consume({.business_key = "a"}, add_effect);
  CHECK_THROWS((void)once.consume({.business_key = "c"}, add_effect));  // it waits for the other transaction
  other->rollback();
  CHECK(once.consume({.business_key = "c"}, add_effect).outcome == Outcome::consumed);
}

/// Whether the session has autocommit on, as the server says.
bool autocommits(soci::session& sql) {
  int value = 0;
  sql << "select @@autocommit", soci::into(value);
  return value == 1;
}

TEST_CASE("autocommit that the service switches between two messages stays as it is" * doctest::skip(!on_mysql())) {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  int keys = 0;
  for (const int autocommit : {0, 1, 0, 1}) {
    *sql << "set autocommit = " + std::to_string(autocommit);
    // A row whose lease has expired is taken over. Before it, the key is read without a transaction.
    const std::string expired = "expired-" + std::to_string(++keys);
    db.run(
        "insert into txinbox_consumed_message (consumer, business_key, state, attempt_token, lease_fence, "
        "lease_expires_at, consumed_at) values ('svc', '" +
        expired + "', 'consuming', x'00000000000000000000000000000000', 1, '2020-01-01', '2020-01-01')");
    CHECK(consumer.consume({.business_key = expired}, add_effect).outcome == Outcome::consumed);
    CHECK(autocommits(*sql) == (autocommit == 1));
    sql->rollback();
    CHECK(consumer.consume({.business_key = expired}, add_effect).outcome == Outcome::already_consumed);
    check_consumes(consumer, "key-" + std::to_string(keys));
    CHECK(autocommits(*sql) == (autocommit == 1));
    sql->rollback();
    for (int i = 0; i < 5; ++i) (void)consumer.consume({.business_key = expired}, add_effect);
    CHECK(autocommits(*sql) == (autocommit == 1));
    sql->rollback();
  }
  CHECK(db.effects() == 12);
}

// The reply to a statement that fails does not tell the client that autocommit is off.
TEST_CASE("autocommit that a failing procedure of the service switches off stays off, and no transaction stays open" *
          doctest::skip(!on_mysql())) {
  EffectDatabase db;
  db.run("create procedure switch_off() begin set autocommit = 0; signal sqlstate '45000'; end");
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  check_consumes(consumer, "a");
  int keys = 0;
  for (const int duplicates : {0, 5}) {
    for (const bool is_new : {true, false}) {
      *sql << "set autocommit = 1";
      CHECK(consumer.consume({.business_key = "reset-" + std::to_string(++keys)}, add_effect).outcome ==
            Outcome::consumed);
      for (int i = 0; i < duplicates; ++i) (void)consumer.consume({.business_key = "a"}, add_effect);
      CHECK_THROWS(*sql << "call switch_off()");
      const std::string key = is_new ? "new-" + std::to_string(keys) : "a";
      CHECK(consumer.consume({.business_key = key}, add_effect).outcome ==
            (is_new ? Outcome::consumed : Outcome::already_consumed));
      CHECK(!autocommits(*sql));
      sql->rollback();
    }
  }
}

TEST_CASE("a proxy that resets the service's connection costs round trips for two messages" *
          doctest::skip(!on_mysql())) {
  EffectDatabase db;
  Proxy proxy(db.url());
  const auto sql = TestDatabase::session_through(proxy.url());
  TxConsumer consumer(*sql, "svc");
  int keys = 0;
  const auto cost = [&] {
    const int before = proxy.round_trips();
    CHECK(consumer.consume({.business_key = "key-" + std::to_string(++keys)}, add_effect).outcome == Outcome::consumed);
    return proxy.round_trips() - before;
  };
  cost();
  cost();  // it finds out whether the client library learns of another default database
  const int usual = cost();
  reset_unnoticed(*sql);
  cost();  // with statements that are not prepared
  cost();  // it prepares them
  CHECK(cost() == usual);
}

TEST_CASE("the end of a consumer leaves further results that the service has not read" * doctest::skip(!on_mysql())) {
  EffectDatabase db;
  db.run("create procedure three_results() begin select 1; select 2; select 3; end");
  const auto sql = db.session();
  MYSQL* connection = native_handle(*sql).mysql();
  std::optional<TxConsumer> consumer(std::in_place, *sql, "svc");
  check_consumes(*consumer, "a");
  REQUIRE(mysql_query(connection, "call three_results()") == 0);
  mysql_free_result(mysql_store_result(connection));
  consumer.reset();
  int results = 1;
  while (mysql_next_result(connection) == 0) {
    MYSQL_RES* result = mysql_store_result(connection);
    if (result == nullptr) continue;  // the end of the CALL
    ++results;
    mysql_free_result(result);
  }
  CHECK(results == 3);
}

TEST_CASE("a transaction that another one has replaced on the service's connection is not committed" *
          doctest::skip(!on_mysql())) {
  EffectDatabase db;
  const auto sql = db.session();
  Transaction first(*sql);
  CHECK(first.claim("svc", {.business_key = "x"}) == Claim::claimed);
  sql->commit();
  Transaction second(*sql);
  CHECK(second.claim("svc", {.business_key = "y"}) == Claim::claimed);
  *sql << "insert into effect values ('half of y')";
  CHECK(thrown_by([&] { first.commit(); }) == "transaction_lost");
  CHECK(db.effects() == 0);
}

TEST_CASE("two consumers on one SQLite session survive that it is closed and opened again" *
          doctest::skip(!on_sqlite3())) {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer first(*sql, "first");
  TxConsumer second(*sql, "second");
  for (const char* key : {"a", "b"}) {
    check_consumes(first, key);
    check_consumes(second, key);
    sql->reconnect();
  }
  check_consumes(first, "c");
  check_consumes(second, "c");
  CHECK(db.effects() == 12);
}

TEST_CASE("a transaction also locks a database that the service attaches later" * doctest::skip(!on_sqlite3())) {
  EffectDatabase db;
  const TestDatabase attached(TestDatabase::Tables::none);
  const std::string file = attached.url().substr(std::string("sqlite://").size());
  const auto sql = db.session();
  const auto other = attached.session("timeout=0");
  *other << "create table other_effect (name text)";
  TxConsumer consumer(*sql, "svc");
  check_consumes(consumer, "a");
  *sql << "attach '" + file + "' as other";
  const auto outcome = consumer.consume({.business_key = "b"}, [&](soci::session& s, Delivery& d) {
    add_effect(s, d);
    CHECK_THROWS(*other << "insert into other_effect values ('in between')");
    s << "insert into other.other_effect values ('ours')";
  });
  CHECK(outcome.outcome == Outcome::consumed);
}

}  // namespace
}  // namespace txinbox::test
