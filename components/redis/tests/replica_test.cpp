// A primary with a replica: which steps a failover loses, and which it keeps.

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <txinbox/txinbox.hpp>

#include "redis_server.hpp"
#include "support/lease_subject.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// A replica of the server. Its port is the server's port plus one.
class Replica {
 public:
  explicit Replica(RedisServer& primary) {
    std::filesystem::create_directories(folder_ / "tls");
    std::filesystem::copy_file(folder_ / "../tls/password", folder_ / "tls/password",
                               std::filesystem::copy_options::overwrite_existing);
    control("start", std::to_string(port_));
    server_.run({"CONFIG", "SET", "masterauth", RedisServer::password()});
    server_.run({"REPLICAOF", "127.0.0.1", std::to_string(RedisServer::options().port)});
    const auto is_there = [&] {
      return primary.run({"INFO", "replication"}).find("state=online") != std::string::npos;
    };
    while (!is_there()) std::this_thread::sleep_for(10ms);
  }
  ~Replica() { control("kill", ""); }
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  RedisServer& server() { return server_; }

  void signal(int number) const {
    pid_t process = 0;
    std::ifstream(folder_ / "pid") >> process;
    REQUIRE(::kill(process, number) == 0);
  }

  RedisOptions options() const {
    RedisOptions options = RedisServer::options();
    options.port = port_;
    return options;
  }

 private:
  void control(const std::string& what, const std::string& more) const {
    const std::string command =
        std::string(std::getenv("TXINBOX_BROKER_SCRIPT")) + " " + what + " " + folder_.string() + " " + more + " >&2";
    if (std::system(command.c_str()) != 0) MESSAGE("the replica: " << what);  // NOLINT(cert-env33-c)
  }

  const std::filesystem::path folder_ = std::filesystem::path(std::getenv("TXINBOX_BROKER_FOLDER")) / "replica";
  const std::uint16_t port_ = static_cast<std::uint16_t>(RedisServer::options().port + 1);
  RedisServer server_{port_};
};

TEST_CASE("with wait_replicas, only steps that the replica has are acknowledged, and a failover keeps them") {
  RedisServer primary;
  Replica replica(primary);
  RedisOptions options = RedisServer::options();
  options.wait_replicas = 1;
  options.replica_timeout = 10s;
  LeaseConsumer consumer(open_redis(options), "svc", {}, {.retry = {.max_runs = 1}});
  CHECK(consumer.consume(order, [](Lease& lease) { lease.delivery().store("receipt"); }).outcome == consumed);
  CHECK(consumer.consume(order, must_not_run).outcome == duplicate);
  CHECK(diagnose_redis(options).size() == 1);  // min-replicas-to-write

  // The replica is cut off while a handler runs.
  options.replica_timeout = 50ms;
  LeaseConsumer cut_off(open_redis(options), "svc", {}, {.retry = {.max_runs = 1}});
  const auto cut = [&](Lease&) { replica.server().run({"REPLICAOF", "NO", "ONE"}); };
  CHECK(thrown_by([&] { (void)cut_off.consume({.business_key = "lost"}, cut); }) == "transient");

  // The failover.
  LeaseConsumer after(open_redis(replica.options()), "svc");
  const Result kept = after.consume(order, must_not_run);
  CHECK(kept.outcome == duplicate);
  CHECK(kept.stored == "receipt");
  CHECK(after.consume({.business_key = "lost"}, must_not_run).outcome == in_progress);  // the replica has its lease
}

TEST_CASE("a duplicate is not acknowledged while the replica does not have the completion") {
  RedisServer primary;
  Replica replica(primary);
  LeaseConsumer careless(open_redis(RedisServer::options()), "svc");
  RedisOptions options = RedisServer::options();
  options.wait_replicas = 1;
  options.replica_timeout = 50ms;
  LeaseConsumer careful(open_redis(options), "svc", {}, {.retry = {.max_runs = 1}});
  replica.signal(SIGSTOP);  // its connection stays open
  CHECK(careless.consume(order, nothing).outcome == consumed);
  CHECK(thrown_by([&] { (void)careful.consume(order, must_not_run); }) == "transient");
  replica.signal(SIGCONT);
  options.replica_timeout = 10s;
  LeaseConsumer patient(open_redis(options), "svc");
  CHECK(patient.consume(order, must_not_run).outcome == duplicate);
}

TEST_CASE("without wait_replicas, a failover can lose an acknowledged message") {
  RedisServer primary;
  Replica replica(primary);
  replica.server().run({"REPLICAOF", "NO", "ONE"});  // the primary has no replica now, and does not report it
  LeaseConsumer consumer(open_redis(RedisServer::options()), "svc");
  CHECK(consumer.consume(order, nothing).outcome == consumed);
  LeaseConsumer after(open_redis(replica.options()), "svc");
  int runs = 0;
  CHECK(after.consume(order, [&](Lease&) { ++runs; }).outcome == consumed);
  CHECK(runs == 1);
}

}  // namespace
}  // namespace txinbox::test
