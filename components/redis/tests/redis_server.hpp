#pragma once

#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <hiredis/hiredis.h>
#include <txinbox/redis.hpp>

#include "brokers/broker_under_test.hpp"
#include "support/environment.hpp"

namespace txinbox::test {

/// The server that brokers.sh has started. The constructor deletes all keys.
class RedisServer {
 public:
  RedisServer() : RedisServer(0) {
    password();
    run({"FLUSHALL"});
  }

  /// Another server on this port, whose keys are not deleted. With 0, the server of brokers.sh.
  explicit RedisServer(std::uint16_t port) : port_(port) {}

  /// The password of the user "default".
  static std::string password();

  static RedisOptions options();

  /// Runs a command with a separate client. An array is returned as text with spaces between its elements. A missing
  /// value is empty.
  ///
  /// Errors: `std::runtime_error` for an error reply.
  std::string run(const std::vector<std::string>& command);

  /// A field of the JSON in the value of a key. Empty if there is no key or no field.
  std::string field(const std::string& key, const std::string& name);

  /// Writes a field of the JSON in the value of a key, and keeps its time to live.
  void set_field(const std::string& key, const std::string& name, const std::string& value);

  /// The names of all keys.
  std::vector<std::string> keys();

  static void kill() { control("kill"); }
  static void start() { control("start"); }

 private:
  struct Free {
    void operator()(redisContext* context) const { redisFree(context); }
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
  };
  using Reply = std::unique_ptr<redisReply, Free>;

  static void control(const std::string& what);
  Reply ask(const std::vector<std::string>& command);

  const std::uint16_t port_;
  std::unique_ptr<redisContext, Free> context_;
};

}  // namespace txinbox::test
