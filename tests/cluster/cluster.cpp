#include "cluster/cluster.hpp"

#include <chrono>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/url.hpp"
#include "support/environment.hpp"

namespace txinbox::test {
namespace {

using std::chrono::milliseconds;

const std::string& node_url(int node) {
  static const std::vector<std::string> urls = [] {
    std::istringstream list(variable("TXINBOX_TEST_GALERA_URLS"));
    std::vector<std::string> all;
    for (std::string each; list >> each;) all.push_back(each);
    return all;
  }();
  return urls.at(static_cast<std::size_t>(node) - 1);
}

std::unique_ptr<soci::session> connect(int node) { return TestDatabase::session_through(node_url(node)); }

std::string status_of(soci::session& sql, const std::string& name) {
  std::string ignored;
  std::string value;
  sql << "show status like '" + name + "'", soci::into(ignored), soci::into(value);
  return value;
}

/// Asks a node repeatedly, each time on a new connection, because the node may be starting or leaving.
void wait_until(int node, const std::string& what, const std::function<bool(soci::session&)>& is_so) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  for (;;) {
    try {
      if (is_so(*connect(node))) return;
    } catch (const soci::soci_error&) {  // NOLINT(bugprone-empty-catch): not yet
    }
    if (std::chrono::steady_clock::now() > give_up) {
      throw std::runtime_error("node " + std::to_string(node) + " is still not " + what);
    }
    std::this_thread::sleep_for(milliseconds(50));
  }
}

}  // namespace

void node_command(const std::string& act, int node) {
  const std::string command = variable("TXINBOX_TEST_GALERA_NODE") + " " + act + " " + std::to_string(node);
  if (std::system(command.c_str()) != 0) throw std::runtime_error(command + " has failed");
}

void cut_off(int node) { *connect(node) << "set global wsrep_provider_options = 'gmcast.isolate=1'"; }

void let_back(int node) { *connect(node) << "set global wsrep_provider_options = 'gmcast.isolate=0'"; }

void wait_until_synced(int node) {
  wait_until(node, "synced", [](soci::session& sql) {
    return status_of(sql, "wsrep_local_state_comment") == "Synced" && status_of(sql, "wsrep_ready") == "ON" &&
           status_of(sql, "wsrep_cluster_size") == std::to_string(nodes);
  });
}

void wait_until_refusing(int node) {
  wait_until(node, "cut off", [](soci::session& sql) { return status_of(sql, "wsrep_ready") == "OFF"; });
}

void wait_until_cluster_has(int members, int seen_by) {
  wait_until(seen_by, "in a cluster of " + std::to_string(members), [members](soci::session& sql) {
    return status_of(sql, "wsrep_cluster_size") == std::to_string(members) && status_of(sql, "wsrep_ready") == "ON";
  });
}

ClusterDatabase::ClusterDatabase() : schema_(EffectDatabase::text("select database()")) {
  for (int node = 1; node <= nodes; ++node) wait_until_synced(node);
  run("create table account (id integer primary key, n integer not null)");
  run("insert into account values (0,0),(1,0),(2,0),(3,0),(4,0),(5,0),(6,0),(7,0),(8,0),(9,0)");
  // One table for each thread that applies other nodes' writes. The class Lag locks them.
  run("create table lag1 (id integer primary key auto_increment)");
  run("create table lag2 (id integer primary key auto_increment)");
  for (int node = 1; node <= nodes; ++node) number(node, "select count(*) from account");
  run("set wsrep_sync_wait = 15");
}

std::string ClusterDatabase::url(int node) const {
  const std::string& base = node_url(node);
  return base.substr(0, base.rfind('/') + 1) + schema_;
}

Pool ClusterDatabase::pool(int node, PoolOptions options) const { return open_pool(url(node), std::move(options)); }

std::unique_ptr<soci::session> ClusterDatabase::session(int node) const { return session_through(url(node)); }

long long ClusterDatabase::number(int node, const std::string& sql) const { return std::stoll(text(node, sql)); }

std::string ClusterDatabase::text(int node, const std::string& sql) const {
  const auto session = connect(node);  // the database may not exist there yet
  *session << "set wsrep_sync_wait = 15";
  *session << "select 1";
  *session << "use " + schema_;
  std::string value;
  *session << sql, soci::into(value);
  return value;
}

long long ClusterDatabase::status(int node, const std::string& name) const {
  return std::stoll(status_of(*connect(node), name));
}

Lag::Lag(const ClusterDatabase& db, int node) : holder_(db.session(node)) {
  *holder_ << "lock tables lag1 write, lag2 write";
  const auto other = db.session(node % nodes + 1);
  *other << "insert into lag1 values ()";
  *other << "insert into lag2 values ()";
}

Lag::~Lag() {
  try {
    *holder_ << "unlock tables";
  } catch (const soci::soci_error&) {  // NOLINT(bugprone-empty-catch): the end of the session also unlocks the tables
  }
}

}  // namespace txinbox::test
