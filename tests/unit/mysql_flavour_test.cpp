#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/mysql/flavour.hpp"

using namespace txinbox::backend;

namespace {

using Product = ServerVersion::Product;

Flavour flavour_of_text(const char* version) { return flavour_of(parse_server_version(version)); }

/// The name that `doctor` gives to a server whose handshake and variable `version` are the same.
std::string unknown(const std::string& version, Settings others = {}) {
  others["version"] = version;
  return unknown_product(version, others);
}

}  // namespace

TEST_CASE("MariaDB is known by its version string") {
  for (const char* version :
       {"10.5.0-MariaDB", "10.11.19-MariaDB-0+deb12u1", "5.5.5-10.6.12-MariaDB-1:10.6.12+maria~ubu2004-log",
        "11.4.2-MariaDB-ubu2404", "10.6.14-MariaDB-log", "10.6.12-8-MariaDB-enterprise-log"}) {
    CAPTURE(version);
    CHECK(parse_server_version(version).product == Product::mariadb);
    CHECK(parse_server_version(version).is_supported());
    CHECK(unknown(version).empty());
    const Flavour flavour = flavour_of_text(version);
    CHECK(flavour.compound_statements);
    CHECK(flavour.isolation == "tx_isolation");
    CHECK_FALSE(flavour.optimizer_hints);
  }
}

TEST_CASE("MySQL is known by its version string, also as Percona and the clouds build it") {
  for (const char* version :
       {"8.0.19", "8.0.36", "8.4.3", "9.7.4-2", "8.0.43-1+b1", "8.0.43-1~bpo12+1", "8.0.36-cll-lve",
        "8.0.36-0ubuntu0.22.04.1", "8.0.36-28", "8.0.35-27.1", "8.0.31-google", "8.0.37-azure", "8.0.34-u1-cloud",
        "8.0.36-commercial", "8.0.36-debug", "8.0.33-log", "8.0.36-1.el8", "9.0.0-rc"}) {
    CAPTURE(version);
    CHECK(parse_server_version(version).product == Product::mysql);
    CHECK(parse_server_version(version).is_supported());
    CHECK(unknown(version).empty());
    const Flavour flavour = flavour_of_text(version);
    CHECK_FALSE(flavour.compound_statements);
    CHECK(flavour.optimizer_hints);
    CHECK(flavour.isolation == "transaction_isolation");
  }
}

TEST_CASE("a server that is neither gets the careful set, and doctor names it") {
  for (const char* version :
       {"8.0.11-TiDB-v7.5.0", "5.7.25-TiDB-v6.5.0", "8.0.30-Vitess", "5.7.9-vitess-12.0.6", "8.0.23-PlanetScale",
        "5.7.25-OceanBase-v4.2.1.0", "8.0.mysql_aurora.3.04.0", "8.0.22-v3-txsql-22.6.1", "22.3.2.1-ClickHouse",
        "5.0.45-Xpand-6.0", "8.0.33-dolt", "8.0", "", "a proxy"}) {
    CAPTURE(version);
    CHECK(parse_server_version(version).product == Product::unknown);
    CHECK_FALSE(unknown(version).empty());
    const Flavour flavour = flavour_of_text(version);
    CHECK_FALSE(flavour.has_all_variables);
    CHECK_FALSE(flavour.compound_statements);
    CHECK_FALSE(flavour.insert_returning);
    CHECK_FALSE(flavour.set_statement);
    CHECK_FALSE(flavour.optimizer_hints);
    CHECK_FALSE(flavour.applicable_roles);
    CHECK_FALSE(flavour.binary_log);
    CHECK(flavour.lock_existing == "FOR UPDATE");
    CHECK(flavour.when_locked.empty());
  }
}

TEST_CASE("a version that is too old gets the careful set, and doctor does not call it unknown") {
  // OceanBase, ProxySQL and Azure's gateway send such versions, too, when a client connects.
  for (const char* version :
       {"8.0.18", "8.0.11", "5.7.44", "5.6.47.0", "5.7.25", "10.4.32-MariaDB", "5.5.5-10.3.39-MariaDB-log"}) {
    CAPTURE(version);
    CHECK_FALSE(parse_server_version(version).is_supported());
    CHECK_FALSE(flavour_of_text(version).has_all_variables);
    CHECK(unknown(version).empty());
  }
}

TEST_CASE("a server that reports a version of MySQL is recognized by its other variables") {
  CHECK(unknown("8.0.28", {{"aurora_version", "3.04.0"}}) == "Aurora 3.04.0");
  CHECK(unknown("8.0.33", {{"version_comment", "Dolt"}}) == "8.0.33 (Dolt)");
  CHECK(unknown("5.7.25", {{"version_comment", "OceanBase_CE 4.2.1.0 (r100000102023092807)"}}) ==
        "5.7.25 (OceanBase_CE 4.2.1.0 (r100000102023092807))");
  CHECK(unknown("8.0.35-27.1", {{"wsrep_provider", "/usr/lib/galera4/libgalera_smm.so"}}) == "8.0.35-27.1 with Galera");
  for (const char* comment : {"MySQL Community Server - GPL", "Percona Server (GPL), Release 28, Revision 47601f19",
                              "(Debian)", "Source distribution", "Homebrew"}) {
    CHECK(unknown("8.0.36", {{"version_comment", comment}, {"wsrep_provider", "none"}}).empty());
  }
  CHECK(unknown("10.6.14-MariaDB", {{"wsrep_provider", "/usr/lib/galera4/libgalera_smm.so"}}).empty());
}

TEST_CASE("doctor names a proxy that sends another server's version") {
  CHECK(unknown_product("8.0.11", {{"version", "10.11.6-MariaDB"}}) ==
        "10.11.6-MariaDB, behind a proxy that calls it 8.0.11");
  CHECK(unknown_product("10.11.6-MariaDB", {{"version", "5.5.5-10.11.6-MariaDB"}}).empty());
}

TEST_CASE("SKIP LOCKED is asked of servers that have it") {
  CHECK(flavour_of_text("10.5.22-MariaDB").when_locked == "NOWAIT");
  CHECK(flavour_of_text("10.6.0-MariaDB").when_locked == "SKIP LOCKED");
  CHECK(flavour_of_text("11.4.2-MariaDB").when_locked == "SKIP LOCKED");
  CHECK(flavour_of_text("8.0.36").when_locked == "SKIP LOCKED");
}

TEST_CASE("of an unknown server, only the variables that it has are set and restored") {
  Flavour tidb;
  tidb.keep_existing({"tx_isolation", "transaction_isolation", "tx_read_only", "max_execution_time", "wait_timeout",
                      "time_zone", "innodb_lock_wait_timeout", "timestamp", "something"});
  CHECK(tidb.restored() == std::vector<std::string_view>{"transaction_isolation", "time_zone",
                                                         "innodb_lock_wait_timeout", "tx_read_only",
                                                         "max_execution_time", "wait_timeout"});
  CHECK(tidb.statement_seconds.empty());
  CHECK(tidb.clock == "timestamp");
  CHECK_FALSE(tidb.cluster);

  Flavour nothing;
  nothing.keep_existing({});
  CHECK(nothing.restored().empty());
  CHECK(nothing.clock.empty());

  Flavour mariadb;
  mariadb.keep_existing({"tx_isolation", "wait_timeout", "idle_transaction_timeout", "wsrep_sync_wait"});
  CHECK(mariadb.restored() == std::vector<std::string_view>{"tx_isolation", "idle_transaction_timeout"});
  CHECK(mariadb.cluster);
}

TEST_CASE("the mode of transactions over shards is restored where it was found") {
  Flavour vitess;
  vitess.keep_existing({"transaction_isolation"});
  CHECK(vitess.restored() == std::vector<std::string_view>{"transaction_isolation"});
  vitess.transaction_mode = "transaction_mode";
  CHECK(vitess.restored() == std::vector<std::string_view>{"transaction_isolation", "transaction_mode"});
}

TEST_CASE("OceanBase's own time-outs are set, because it ignores those of MySQL") {
  Flavour oceanbase = flavour_of_text("5.7.25");  // its handshake says no more
  oceanbase.keep_existing(
      {"transaction_isolation", "wait_timeout", "ob_query_timeout", "ob_trx_lock_timeout", "ob_trx_idle_timeout"});
  CHECK(oceanbase.restored() == std::vector<std::string_view>{"transaction_isolation", "wait_timeout",
                                                              "ob_query_timeout", "ob_trx_lock_timeout",
                                                              "ob_trx_idle_timeout"});
  const auto asked = variables_to_ask_for();
  for (const char* name : {"ob_query_timeout", "ob_trx_lock_timeout", "ob_trx_idle_timeout"}) {
    CHECK(std::ranges::count(asked, name) == 1);
  }
}

TEST_CASE("an unknown server is asked for every variable that a known one has") {
  const auto asked = variables_to_ask_for();
  for (const char* version : {"10.11.19-MariaDB", "8.0.36"}) {
    for (const std::string_view name : flavour_of_text(version).restored()) {
      CAPTURE(name);
      CHECK(std::find(asked.begin(), asked.end(), name) != asked.end());
    }
  }
}
