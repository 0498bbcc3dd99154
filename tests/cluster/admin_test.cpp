// Migrations, verify and doctor on a cluster.

#include <future>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/finding.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/txinbox.hpp>

#include "cluster/cluster.hpp"
#include "support/schema_tools.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

long long newest_version() { return static_cast<long long>(migration_files().size()); }

void drop_tables(const ClusterDatabase& db) {
  const std::string first =
      "select coalesce(min(table_name), '') from information_schema.tables where table_schema = database() and "
      "table_name like 'txinbox%'";
  for (std::string table = db.text(1, first); !table.empty(); table = db.text(1, first)) db.run("drop table " + table);
}

TEST_CASE("a migration through one node is verified on all") {
  const ClusterDatabase db;
  for (int node = 1; node <= nodes; ++node) {
    CAPTURE(node);
    const auto sql = db.session(node);
    *sql << "set wsrep_sync_wait = 15, sql_mode = 'STRICT_ALL_TABLES'";
    CHECK(thrown_by([&] { verify(*sql); }) == "nothing");
    CHECK(thrown_by([&] { migrate(*sql); }) == "nothing");
    CHECK(inbox_status(*sql).schema_version == newest_version());
  }
}

TEST_CASE("migrations through several nodes at once end in the same tables") {
  for (int i = 0; i < 10; ++i) {
    const ClusterDatabase db;
    drop_tables(db);
    std::vector<std::unique_ptr<soci::session>> sessions;
    for (int node = 1; node <= nodes; ++node) {
      sessions.push_back(db.session(node));
      db.number(node, "select 1");
    }
    std::vector<std::future<std::string>> thrown;
    for (auto& sql : sessions) {
      thrown.push_back(std::async(std::launch::async, [&] { return thrown_by([&] { migrate(*sql); }); }));
    }
    for (auto& each : thrown) CHECK(each.get() == "nothing");
    for (int node = 1; node <= nodes; ++node) {
      CHECK(db.number(node, "select count(*) from txinbox_schema") == newest_version());
    }
  }
}

/// The report of doctor on a node after a setting was changed, for example "error wsrep_on".
std::vector<std::string> findings_after(const ClusterDatabase& db, const std::string& sql) {
  Pool pool = db.pool(2);
  auto connection = pool.acquire();
  if (!sql.empty()) connection.session() << sql;
  std::vector<std::string> all;
  for (const Finding& each : diagnose(connection.session())) {
    all.push_back(std::string(to_string(each.severity)) + " " + each.subject);
  }
  return all;
}

/// On every cluster: the nodes number their rows from different series.
const std::string numbers = "note auto_increment_increment";

TEST_CASE("doctor reports only the numbers on a healthy cluster, and names settings that would make nodes differ") {
  using Findings = std::vector<std::string>;
  const ClusterDatabase db;
  CHECK(findings_after(db, "") == Findings{numbers});
  CHECK(findings_after(db, "set wsrep_on = OFF") == Findings{"error wsrep_on", numbers});
  CHECK(findings_after(db, "set wsrep_OSU_method = RSU") == Findings{"note wsrep_OSU_method", numbers});
  for (const std::string name : {"pc.ignore_sb", "pc.ignore_quorum"}) {
    CAPTURE(name);
    CHECK(findings_after(db, "set global wsrep_provider_options = '" + name + "=true'") ==
          Findings{"error " + name, numbers});
    CHECK(findings_after(db, "set global wsrep_provider_options = '" + name + "=false'") == Findings{numbers});
  }
  CHECK(findings_after(db, "set global innodb_flush_log_at_trx_commit = 0") ==
        Findings{"note innodb_flush_log_at_trx_commit", numbers});
  CHECK(findings_after(db, "set global innodb_flush_log_at_trx_commit = 1") == Findings{numbers});
}

}  // namespace
}  // namespace txinbox::test
