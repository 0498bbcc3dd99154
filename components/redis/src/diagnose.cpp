#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <txinbox/redis.hpp>

#include "connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace redis {
namespace {

/// The answer to `INFO`. Each line is NAME:VALUE.
class Info {
 public:
  explicit Info(std::string_view text) {
    while (!text.empty()) {
      const auto end = std::min(text.find("\r\n"), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 2, text.size()));
      const auto colon = line.find(':');
      if (colon != std::string_view::npos) values_.emplace(line.substr(0, colon), line.substr(colon + 1));
    }
  }

  std::string text(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? std::string() : found->second;
  }

  int number(const std::string& name) const {
    const std::string value = text(name);
    int number = 0;
    std::from_chars(value.data(), value.data() + value.size(), number);
    return number;
  }

 private:
  std::map<std::string, std::string> values_;
};

/// The value of a setting. None if the user may not read it, or if the server hides it.
std::optional<std::string> setting(Connection& connection, std::string_view name) {
  const Reply reply = connection.run({"CONFIG", "GET", name});
  if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2) return std::nullopt;
  return std::string(text_of(*reply->element[1]));
}

void check_server(const Info& info, std::vector<Finding>& findings) {
  constexpr int oldest = 6;
  if (info.number("redis_version") < oldest) {
    findings.push_back({Severity::error, "redis_version", info.text("redis_version"),
                        "use Redis 6 or later; txinbox is tested with Redis 7"});
  }
  if (info.number("cluster_enabled") != 0) {
    findings.push_back({Severity::error, "cluster_enabled", "the server is a node of a Redis Cluster",
                        "use a server outside a cluster: this component does not follow redirections"});
  }
  if (info.text("role") != "master") {
    findings.push_back(
        {Severity::error, "role", "the server is a replica, which refuses writes", "give the address of the primary"});
  }
  if (info.text("aof_last_write_status") == "err") {
    findings.push_back({Severity::error, "aof_last_write_status", "the last write of the append-only file failed",
                        "repair the disk; Redis refuses writes until then"});
  }
}

void check_durability(const Info& info, const std::optional<std::string>& fsync, std::vector<Finding>& findings) {
  if (info.number("aof_enabled") == 0) {
    findings.push_back({Severity::warning, "appendonly",
                        "no: a restart forgets what was completed since the last snapshot, and its messages run again",
                        "appendonly yes, in redis.conf; CONFIG SET appendonly yes"});
    return;
  }
  if (!fsync) {
    findings.push_back({Severity::note, "appendfsync", "this user may not read it (CONFIG GET)",
                        "check that redis.conf has appendfsync always"});
  } else if (*fsync != "always") {
    findings.push_back({Severity::warning, "appendfsync",
                        *fsync + ": a power cut forgets what was completed in the last seconds",
                        "appendfsync always, in redis.conf; CONFIG SET appendfsync always"});
  }
}

void check_memory(const Info& info, std::vector<Finding>& findings) {
  const std::string policy = info.text("maxmemory_policy");
  if (policy == "noeviction") return;
  const bool limited = info.text("maxmemory") != "0";
  findings.push_back({limited ? Severity::warning : Severity::note, "maxmemory-policy",
                      policy + (limited ? ": Redis removes keys without an error when its memory is full"
                                        : ": Redis would remove keys if it had a maxmemory"),
                      "maxmemory-policy noeviction: a full server then refuses new leases"});
}

void check_replicas(const Info& info, const std::optional<std::string>& least, int wait_replicas,
                    std::vector<Finding>& findings) {
  const int replicas = info.number("connected_slaves");
  if (wait_replicas > replicas) {
    findings.push_back({Severity::error, "wait_replicas",
                        std::to_string(replicas) + " replicas are connected, fewer than wait_replicas",
                        "connect replicas, or make wait_replicas smaller"});
  }
  if (replicas == 0) return;
  if (wait_replicas == 0) {
    findings.push_back({Severity::warning, "replicas", "replication is asynchronous: a failover forgets the last steps",
                        "set wait_replicas; it narrows the loss, but cannot exclude it"});
  }
  if (least == "0") {
    findings.push_back({Severity::warning, "min-replicas-to-write",
                        "0: a primary that is cut off goes on to confirm steps, which a failover forgets",
                        "min-replicas-to-write 1, in redis.conf"});
  }
}

}  // namespace
}  // namespace redis

std::vector<Finding> diagnose_redis(const RedisOptions& options) {
  redis::Connection connection(options);
  const redis::Reply reply = connection.run({"INFO"});
  redis::throw_if_error(*reply);
  const redis::Info info(redis::text_of(*reply));
  std::vector<Finding> findings;
  redis::check_server(info, findings);
  redis::check_durability(info, redis::setting(connection, "appendfsync"), findings);
  redis::check_memory(info, findings);
  redis::check_replicas(info, redis::setting(connection, "min-replicas-to-write"), options.wait_replicas, findings);
  return findings;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
