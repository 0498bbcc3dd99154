#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hiredis/hiredis.h>
#include <txinbox/error.hpp>
#include <txinbox/redis.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace redis {

/// The reply to a command was lost. It is not known whether the server has run the command.
class ConnectionLost : public LeaseStoreError {
 public:
  using LeaseStoreError::LeaseStoreError;
};

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

/// The bytes of a reply. Empty if the reply has none.
std::string_view text_of(const redisReply&);

/// The code of an error reply, for example "NOSCRIPT". Empty for another reply.
std::string_view error_code_of(const redisReply&);

/// Throws the error that an error reply means. Does nothing for another reply.
void throw_if_error(const redisReply&);

/// One connection to the server. The constructor logs in and selects the database.
class Connection {
 public:
  /// Errors: as `open_redis` says.
  explicit Connection(const RedisOptions&);

  /// Sends a command and waits for its reply, which can be an error reply.
  ///
  /// Errors: `ConnectionLost`. Then the connection must not be used again.
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
