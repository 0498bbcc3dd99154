// A server with MySQL's protocol that txinbox does not know. tests/unknown_server.sh starts two: a MariaDB
// that calls itself TiDB, and one that calls itself MySQL. On any other server these tests are skipped.

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/finding.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/environment.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

/// The version of a MariaDB that calls itself something else. Empty on any other server.
const std::string& disguise() {
  static const std::string version = [] {
    std::string reported;
    if (on_mariadb()) {
      *TestDatabase::session_through(variable("TXINBOX_TEST_URL")) << "select version()", soci::into(reported);
    }
    return reported.find("MariaDB") == std::string::npos ? reported : std::string();
  }();
  return version;
}

long long in_session(soci::session& sql, const std::string& query) {
  long long number = -1;
  sql << query, soci::into(number);
  return number;
}

TEST_CASE("unknown server: doctor warns only that the server is unknown" *
          doctest::skip(disguise().find("TiDB") == std::string::npos)) {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  const auto findings = diagnose(pool.acquire());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::warning);
  CHECK(findings[0].subject == "unknown server");
  CHECK(findings[0].found.find("8.0.11-TiDB") != std::string::npos);
  CHECK(findings[0].remedy.find("txinbox-torture") != std::string::npos);
}

TEST_CASE("unknown server: a pool sets the time-outs that the server has, and restores them" *
          doctest::skip(disguise().empty())) {
  const EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 1,
                                  .lock_timeout = std::chrono::seconds(3),
                                  .statement_timeout = std::chrono::seconds(7),
                                  .idle_transaction_timeout = std::chrono::seconds(11)});
  for (int round = 0; round < 2; ++round) {
    auto connection = pool.acquire();
    CHECK(in_session(connection.session(), "select @@innodb_lock_wait_timeout") == 3);
    CHECK(in_session(connection.session(), "select @@lock_wait_timeout") == 3);
    CHECK(in_session(connection.session(), "select round(@@max_statement_time)") == 7);
    CHECK(in_session(connection.session(), "select @@idle_transaction_timeout") == 11);
    CHECK(in_session(connection.session(), "select @@tx_isolation = 'READ-COMMITTED'") == 1);
    CHECK(in_session(connection.session(), "select @@sql_mode like '%STRICT%'") == 1);
    CHECK(in_session(connection.session(), "select @@time_zone = '+00:00'") == 1);
    connection.session() << "set innodb_lock_wait_timeout = 50, tx_isolation = 'SERIALIZABLE', sql_mode = '', "
                            "time_zone = '+02:00', timestamp = 1";
    connection.session() << "use information_schema";
  }
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume({.business_key = "k"}, [](soci::session&) {}).outcome == Outcome::consumed);
}

TEST_CASE("unknown server: a purge waits for the lock of a row" * doctest::skip(disguise().empty())) {
  const EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 2, .lock_timeout = std::chrono::seconds(1)});
  TxConsumer consumer(pool, "svc");
  for (const char* key : {"a", "b", "c"}) (void)consumer.consume({.business_key = key}, [](soci::session&) {});
  db.run("update txinbox_consumed_message set consumed_at = consumed_at - interval 30 day");
  const auto other = db.session();
  other->begin();
  *other << "update txinbox_consumed_message set attempts = 1 where business_key = 'b'";
  auto connection = pool.acquire();
  CHECK(thrown_by([&] { (void)purge(connection, std::chrono::hours(24)); }) == "transient");
  other->rollback();
  CHECK(purge(connection, std::chrono::hours(24)) == 3);
}

}  // namespace
}  // namespace txinbox::test
