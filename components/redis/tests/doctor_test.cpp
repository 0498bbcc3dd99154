// The findings of `txinbox doctor` and `diagnose_redis` about a server.

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/finding.hpp>
#include <txinbox/txinbox.hpp>

#include "redis_server.hpp"
#include "support/command.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

/// The subjects of all findings, each with its severity.
std::vector<std::string> subjects(const RedisOptions& options = RedisServer::options()) {
  std::vector<std::string> all;
  for (const Finding& each : diagnose_redis(options)) {
    all.push_back(std::string(to_string(each.severity)) + " " + each.subject);
    CHECK(!each.remedy.empty());
  }
  return all;
}

using Subjects = std::vector<std::string>;

/// Changes a setting of the server while this object exists.
struct Setting {
  Setting(RedisServer& server, std::string name, const std::string& value, std::string usual)
      : server_(server), name_(std::move(name)), usual_(std::move(usual)) {
    server_.run({"CONFIG", "SET", name_, value});
  }
  ~Setting() {
    try {
      server_.run({"CONFIG", "SET", name_, usual_});
    } catch (...) {  // NOLINT(bugprone-empty-catch): the next test fails then
    }
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  RedisServer& server_;
  std::string name_;
  std::string usual_;
};

TEST_CASE("a server that loses no key has no finding, and each setting that can lose keys has one") {
  RedisServer server;
  CHECK(subjects() == Subjects{});
  {
    const Setting everysec(server, "appendfsync", "everysec", "always");
    CHECK(subjects() == Subjects{"warning appendfsync"});
  }
  {
    const Setting off(server, "appendonly", "no", "yes");
    CHECK(subjects() == Subjects{"warning appendonly"});
  }
  {
    const Setting policy(server, "maxmemory-policy", "allkeys-lru", "noeviction");
    CHECK(subjects() == Subjects{"note maxmemory-policy"});
    const Setting memory(server, "maxmemory", "100mb", "0");
    CHECK(subjects() == Subjects{"warning maxmemory-policy"});
  }
  RedisOptions waits = RedisServer::options();
  waits.wait_replicas = 1;
  CHECK(subjects(waits) == Subjects{"error wait_replicas"});
  server.run({"REPLICAOF", "127.0.0.1", "1"});
  CHECK(subjects() == Subjects{"error role"});
  server.run({"REPLICAOF", "NO", "ONE"});
}

TEST_CASE("a user that may not read a setting gets a note, and one without the right to INFO an error") {
  RedisServer server;
  RedisOptions options = RedisServer::options();
  options.user = "watcher";
  options.password = "secret";
  server.run({"ACL", "SETUSER", "watcher", "reset", "on", ">secret", "+ping", "+info"});
  CHECK(subjects(options) == Subjects{"note appendfsync"});
  server.run({"ACL", "SETUSER", "watcher", "+config|get"});
  CHECK(subjects(options) == Subjects{});
  server.run({"ACL", "SETUSER", "watcher", "-info"});
  CHECK(thrown_by([&] { (void)diagnose_redis(options); }) == "access_refused");
  server.run({"ACL", "DELUSER", "watcher"});
}

TEST_CASE("the command's doctor examines a Redis server, and shows no password") {
  RedisServer server;
  const std::string url = "redis://" + broker_address();
  const Ended well = run({"doctor", "--db", url});
  CHECK(well.status == 0);
  CHECK(well.out == "nothing found\n");
  const Setting everysec(server, "appendfsync", "everysec", "always");
  const Ended ill = run({"doctor", "--json"}, url);
  CHECK(ill.status == 1);
  CHECK(ill.out.find("appendfsync") != std::string::npos);
  const Ended refused = run({"doctor", "--db", "redis://u:hunter2@" + broker_address()});
  CHECK(refused.status == 2);
  CHECK(refused.err.find("hunter2") == std::string::npos);
  CHECK(run({"doctor", "--db", "rediss://" + broker_address()}).status == 2);
  CHECK(run({"doctor", "--db", "redis://127.0.0.1:1"}).status == 3);
  ::setenv("TXINBOX_REDIS_PASSWORD", "hunter2", 1);
  const Ended wrong = run({"doctor"}, url);
  CHECK(wrong.status == 3);
  CHECK(wrong.err.find("hunter2") == std::string::npos);
  RedisServer::password();
}

}  // namespace
}  // namespace txinbox::test
