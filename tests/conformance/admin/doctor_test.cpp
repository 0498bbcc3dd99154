#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/finding.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

std::string listed(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings)
    text += std::string(to_string(f.severity)) + " " + f.subject + ": " + f.found + "\n";
  return text;
}

/// Runs `sql` on a plain session, and returns the findings about `subject` on this session.
std::vector<Finding> after(const TestDatabase& db, const std::string& sql, const std::string& subject) {
  const auto session = db.session();
  if (!sql.empty()) *session << sql;
  return findings_about(*session, subject);
}

/// Sets a global variable of the server for the time of a test.
class Global {
 public:
  Global(const TestDatabase& db, std::string name, const std::string& value)
      : db_(db), name_(std::move(name)), before_(db.text("select @@global." + name_)) {
    db.run("set global " + name_ + " = " + value);
  }
  ~Global() { db_.run("set global " + name_ + " = " + before_); }
  Global(const Global&) = delete;
  Global& operator=(const Global&) = delete;

 private:
  const TestDatabase& db_;
  std::string name_, before_;
};

TEST_CASE("diagnose finds nothing on a pool's connection to a migrated database") {
  const TestDatabase db;
  const auto findings = findings_beyond_clean_server(db);
  CHECK_MESSAGE(findings.empty(), listed(findings));
}

TEST_CASE("diagnose reports missing tables as findings, and does not throw") {
  const TestDatabase db(TestDatabase::Tables::none);
  const auto sql = db.session();
  const auto findings = diagnose(*sql);
  REQUIRE(findings.size() >= 2);
  CHECK(findings.front().severity == Severity::error);
  CHECK(findings.front().subject == "txinbox_consumed_message");
  CHECK(findings[1].subject == "txinbox_schema");
  const auto by_severity = [](const Finding& a, const Finding& b) { return a.severity > b.severity; };
  CHECK(std::ranges::is_sorted(findings, by_severity));
}

TEST_CASE("every finding has a subject, what was found, and a remedy") {
  const TestDatabase db;
  const auto sql = db.session();
  *sql << here<std::string>("pragma synchronous = 0", "set session wait_timeout = 28800",
                            "set synchronous_commit = off");
  const auto findings = diagnose(*sql);
  CHECK(!findings.empty());
  for (const Finding& finding : findings) {
    CHECK(!finding.subject.empty());
    CHECK(!finding.found.empty());
    CHECK(!finding.remedy.empty());
  }
}

TEST_CASE("diagnose refuses a session that is inside a transaction, and leaves no transaction open") {
  const TestDatabase db;
  const auto sql = db.session();
  (void)diagnose(*sql);
  (void)diagnose(*sql);
  sql->begin();
  long long rows = 0;
  *sql << "select count(*) from txinbox_schema", soci::into(rows);
  CHECK_THROWS_AS((void)diagnose(*sql), Error);
  sql->rollback();
}

struct Setting {
  std::string sql;
  std::string subject;
  Severity severity = Severity::warning;
};

TEST_CASE("diagnose reports settings that are not durable, or that can keep a key locked for long") {
  const TestDatabase db;
  const auto settings = here<std::vector<Setting>>(
      {{"pragma synchronous = normal", "synchronous"},
       {"pragma synchronous = off", "synchronous"},
       {"pragma synchronous = full", "synchronous"},  // safe only with journal_mode = wal
       {"pragma journal_mode = memory", "journal_mode"},
       {"pragma journal_mode = delete", "journal_mode"},
       {"pragma journal_mode = off", "journal_mode", Severity::error},
       {"pragma foreign_keys = off", "foreign_keys", Severity::note},
       {"pragma busy_timeout = 0", "busy_timeout"},
       {"pragma query_only = on", "query_only"},
       {"attach ':memory:' as more", "attached databases"}},
      {{"set session wait_timeout = 28800", "wait_timeout"},
       {"set session innodb_lock_wait_timeout = 3600", "innodb_lock_wait_timeout", Severity::note},
       {"set session lock_wait_timeout = 86400", "lock_wait_timeout", Severity::note},
       {"set session transaction isolation level repeatable read", "transaction_isolation", Severity::note},
       {"set session sql_mode = ''", "sql_mode", Severity::error}},
      {{"set synchronous_commit = off", "synchronous_commit"},
       {"set idle_in_transaction_session_timeout = 0", "idle_in_transaction_session_timeout"},
       {"set idle_in_transaction_session_timeout = '1h'", "idle_in_transaction_session_timeout"},
       {"set lock_timeout = 0", "lock_timeout"},
       {"set lock_timeout = '1h'", "lock_timeout"},
       {"set default_transaction_isolation = serializable", "default_transaction_isolation", Severity::note},
       {"set default_transaction_read_only = on", "default_transaction_read_only"},
       {"set client_encoding = 'LATIN1'", "client_encoding", Severity::error}});
  for (const Setting& setting : settings) {
    CAPTURE(setting.sql);
    const auto findings = after(db, setting.sql, setting.subject);
    REQUIRE(findings.size() == 1);
    CHECK(findings.front().severity == setting.severity);
  }
}

TEST_CASE("diagnose does not report safe settings") {
  const TestDatabase db;
  const auto settings = here<std::vector<Setting>>(
      {{"pragma synchronous = extra", "synchronous"},
       {"pragma journal_mode = wal", "journal_mode"},  // the file keeps this mode
       {"pragma synchronous = full", "synchronous"},
       {"pragma foreign_keys = on", "foreign_keys"}},
      {{"set session wait_timeout = 300", "wait_timeout"},
       {"set session transaction isolation level read committed", "transaction_isolation"},
       {"set session sql_mode = 'STRICT_ALL_TABLES'", "sql_mode"}},
      {{"set synchronous_commit = on", "synchronous_commit"},
       {"set idle_in_transaction_session_timeout = '5min'", "idle_in_transaction_session_timeout"},
       {"set lock_timeout = '10s'", "lock_timeout"}});
  for (const Setting& setting : settings) {
    CAPTURE(setting.sql);
    CHECK(after(db, setting.sql, setting.subject).empty());
  }
}

TEST_CASE("diagnose accepts idle_transaction_timeout of MariaDB in place of wait_timeout" *
          doctest::skip(!on_mariadb())) {
  const TestDatabase db;
  CHECK(after(db, "set session idle_transaction_timeout = 300", "wait_timeout").empty());
  const auto findings = after(db, "set session idle_transaction_timeout = 7200", "idle_transaction_timeout");
  REQUIRE(findings.size() == 1);
  CHECK(findings.front().severity == Severity::warning);
}

TEST_CASE("diagnose reports a server that does not flush at each commit" * doctest::skip(database() != "mysql")) {
  const EffectDatabase db;
  for (const auto& [name, value] : {std::pair("sync_binlog", "0"), std::pair("innodb_flush_log_at_trx_commit", "2")}) {
    const std::string subject = name;
    CAPTURE(subject);
    if (subject == "sync_binlog" && db.number("select @@log_bin") == 0) continue;
    CHECK(after(db, "", subject).empty());
    {
      const Global changed(db, subject, value);
      const auto findings = after(db, "", subject);
      REQUIRE(findings.size() == 1);
      // In a cluster, the other nodes still have a commit that one node loses.
      CHECK(findings.front().severity == (on_galera() ? Severity::note : Severity::warning));
    }
    CHECK(after(db, "", subject).empty());
  }
}

TEST_CASE("diagnose reports a binlog_format that refuses our writes as an error" * doctest::skip(!has_binary_log())) {
  const TestDatabase db;
  const auto findings = after(db, "set session binlog_format = 'STATEMENT'", "binlog_format");
  REQUIRE(findings.size() == 1);
  CHECK(findings.front().severity == Severity::error);
}

TEST_CASE("diagnose reports tables without transactions, and a default engine without transactions" *
          doctest::skip(!on_mysql())) {
  const EffectDatabase db;
  const std::string subject = "tables without transactions";
  CHECK(after(db, "", subject).empty());
  CHECK(after(db, "", "default_storage_engine").empty());
  for (const std::string engine : {"MyISAM", "MEMORY"})
    db.run("create table t_" + engine + " (n integer) engine = " + engine);
  const auto findings = after(db, "set session default_storage_engine = 'MyISAM'", subject);
  REQUIRE(findings.size() == 1);
  CHECK(findings.front().severity == Severity::warning);
  CHECK(findings.front().found.find("(MyISAM)") != std::string::npos);
  CHECK(findings.front().found.find("(MEMORY)") != std::string::npos);
  CHECK(findings.front().found.find("effect") == std::string::npos);
  const auto engines = after(db, "set session default_storage_engine = 'MyISAM'", "default_storage_engine");
  REQUIRE(engines.size() == 1);
  CHECK(engines.front().severity == Severity::note);
}

TEST_CASE("diagnose reports triggers on our table") {
  const TestDatabase db;
  db.run("create table seen (n integer)");
  if (on_postgresql()) {
    db.run(
        "create function note() returns trigger language plpgsql as 'begin insert into seen values (1); return new; "
        "end'");
  }
  db.run(here<std::string>(
      "create trigger mine after insert on txinbox_consumed_message begin insert into seen values (1); end",
      "create trigger mine after insert on txinbox_consumed_message for each row insert into seen values (1)",
      "create trigger mine after insert on txinbox_consumed_message for each row execute function note()"));
  const auto findings = after(db, "", "txinbox_consumed_message");
  REQUIRE(findings.size() == 1);
  CHECK(findings.front().severity == Severity::warning);
  CHECK(findings.front().found.find("mine") != std::string::npos);
}

TEST_CASE("diagnose reports an in-memory database" * doctest::skip(database() != "sqlite3")) {
  Pool pool = open_pool("sqlite::memory:", {.connections = 1});
  const auto connection = pool.acquire();
  migrate(connection);
  const auto findings = diagnose(connection);
  REQUIRE(findings.size() == 1);
  CHECK(findings.front().subject == "database");
  CHECK(findings.front().severity == Severity::warning);
}

}  // namespace
}  // namespace txinbox::test
