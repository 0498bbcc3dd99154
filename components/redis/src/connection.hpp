#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hiredis/hiredis.h>
#include <txinbox/lease_store_error.hpp>
#include <txinbox/redis.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace redis {

/// The reply to a command that was sent did not come. Whether the command ran is not known.
class ConnectionLost : public LeaseStoreError {
 public:
  using LeaseStoreError::LeaseStoreError;
};

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

/// The bytes of a reply; empty if it has none.
std::string_view text_of(const redisReply&);

/// The code of an error reply, such as "NOSCRIPT"; empty for another reply.
std::string_view error_code_of(const redisReply&);

/// Throws what an error reply means. Does nothing for another reply.
void throw_if_error(const redisReply&);

/// One connection to the server, after the password and the database were accepted.
class Connection {
 public:
  /// Errors: as `open_redis` says.
  explicit Connection(const RedisOptions&);

  /// Sends a command and waits for its reply, which can be an error reply.
  ///
  /// Errors: `ConnectionLost`; the connection must not be used again.
  Reply run(const std::vector<std::string_view>& arguments);

 private:
  struct Free {
    void operator()(redisContext* context) const { redisFree(context); }
  };

  void send(const std::vector<std::string_view>& arguments);
  void authenticate(const RedisOptions&);

  std::unique_ptr<redisContext, Free> context_;
};

}  // namespace redis
TXINBOX_NAMESPACE_END
}  // namespace txinbox
