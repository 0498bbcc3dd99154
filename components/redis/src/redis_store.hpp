#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/lease_store.hpp>
#include <txinbox/redis.hpp>
#include <txinbox/version.hpp>

#include "connection.hpp"
#include "scripts.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace redis {

/// Keeps each business key in a string of Redis.
class RedisStore final : public LeaseStore {
 public:
  /// Errors: `Error` invalid_argument.
  explicit RedisStore(RedisOptions options);

  LeaseAnswer claim(const LeaseRequest&) override;
  bool renew(const LeaseRequest&, std::int64_t fence) override;
  bool complete(const LeaseRequest&, std::int64_t fence, const std::optional<std::string>& result) override;
  bool fail(const LeaseRequest&, std::int64_t fence, const LeaseFailure&) override;

 private:
  using Arguments = std::vector<std::string_view>;

  std::string time_to_live(const LeaseRequest&) const;
  Reply run(const Script&, const LeaseRequest&, const Arguments&);
  Reply run_on(Connection&, const Script&, const std::string& key, const Arguments&) const;
  void wait_for_replicas(Connection&) const;
  std::unique_ptr<Connection> take_idle();
  void give_back(std::unique_ptr<Connection>);

  const RedisOptions options_;
  const pid_t process_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

}  // namespace redis
TXINBOX_NAMESPACE_END
}  // namespace txinbox
