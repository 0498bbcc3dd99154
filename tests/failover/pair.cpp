#include "failover/pair.hpp"

#include <signal.h>

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/url.hpp"
#include "support/environment.hpp"

namespace txinbox::test {
namespace {

/// Kills a process and its children at the same time, as if the host had failed.
void kill_with_children(pid_t pid) {
  std::vector<pid_t> all = {pid};
  const std::string task = std::to_string(pid);
  std::ifstream children("/proc/" + task + "/task/" + task + "/children");
  for (pid_t child = 0; children >> child;) all.push_back(child);
  for (const pid_t each : all) kill(each, SIGKILL);
}

template <class Done>
void wait_until(Done done, const char* what) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!done()) {
    if (std::chrono::steady_clock::now() > give_up)
      throw std::runtime_error(std::string("not reached within a minute: ") + what);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::multiset<std::string> strings(soci::session& sql, const std::string& query) {
  const soci::rowset<std::string> rows = (sql.prepare << query);
  return {rows.begin(), rows.end()};
}

}  // namespace

Pool Pair::primary(PoolOptions options) const { return open_pool(url(), std::move(options)); }

std::string Pair::on_replica(const std::string& primary_url) const {
  // The same database, or schema, on the other port.
  const std::string port = ":" + detail::parse_url(primary_url).port + "/";
  std::string url = primary_url;
  url.replace(url.rfind(port), port.size(), ":" + detail::parse_url(variable("TXINBOX_TEST_REPLICA_URL")).port + "/");
  return url;
}

Pool Pair::replica(PoolOptions options) const { return open_pool(on_replica(url()), std::move(options)); }

std::unique_ptr<soci::session> Pair::replica_session() const { return session_through(on_replica(url())); }

void Pair::wait_for_replica() const {
  if (on_mysql()) {
    const std::string position = text("select @@gtid_binlog_pos");
    int failed = 0;
    wait_until(
        [&] {
          try {
            *replica_session() << "select master_gtid_wait('" + position + "', 10)", soci::into(failed);
            return failed == 0;
          } catch (const soci::soci_error&) {  // the replica does not have the database yet
            return false;
          }
        },
        "the replica has all commits");
    return;
  }
  const std::string position = text("select pg_current_wal_flush_lsn()::text");
  wait_until(
      [&] {
        int there = 0;
        *replica_session() << "select (pg_last_wal_replay_lsn() >= '" + position + "')::int", soci::into(there);
        return there == 1;
      },
      "the standby has all commits");
}

void Pair::part() const {
  const auto sql = replica_session();
  if (on_mysql()) {
    *sql << "stop slave io_thread";
    return;
  }
  *sql << "alter system set primary_conninfo = ''";
  *sql << "select pg_reload_conf()";
  wait_until([&] { return number("select count(*) from pg_stat_replication") == 0; }, "the standby has disconnected");
}

void Pair::fail_over() const {
  kill_with_children(std::stoi(variable("TXINBOX_TEST_PRIMARY_PID")));
  const auto sql = replica_session();
  if (on_mysql()) {
    // The replica first applies what it has received.
    wait_until(
        [&] {
          std::string position;
          std::string applied;
          *sql << "select @@gtid_slave_pos", soci::into(applied);
          *sql << "select master_gtid_wait('', 1)";
          std::this_thread::sleep_for(std::chrono::milliseconds(300));
          *sql << "select @@gtid_slave_pos", soci::into(position);
          return position == applied;
        },
        "the replica has applied everything");
    *sql << "stop slave";
    *sql << "set global read_only = 0";
    *sql << "set global rpl_semi_sync_master_enabled = 0";  // the new primary has no replica
    return;
  }
  *sql << "select pg_promote(true, 60)";
}

std::multiset<std::string> Pair::consumed_on_replica() const {
  return strings(*replica_session(), "select business_key from txinbox_consumed_message where state = 'consumed'");
}

std::multiset<std::string> Pair::effects_on_replica() const {
  return strings(*replica_session(), "select id from effect");
}

}  // namespace txinbox::test
