#include "connection.hpp"

#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <new>

#include <txinbox/error.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace redis {

namespace {

using Kind = LeaseStoreError::Kind;

timeval as_timeval(std::chrono::milliseconds time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return {.tv_sec = seconds.count(), .tv_usec = std::chrono::microseconds(time - seconds).count()};
}

// A socket returns EAGAIN after a time-out.
bool is_timeout(int code) { return code == EAGAIN || code == EWOULDBLOCK || code == ETIMEDOUT; }

ConnectionLost lost(int code) {
  return {Kind::transient, "redis", is_timeout(code) ? "timeout" : "connection_lost",
          is_timeout(code) ? "Redis did not answer in time" : "the connection to Redis was lost"};
}

bool is_one_of(std::string_view code, std::initializer_list<std::string_view> codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

bool is_refusal(std::string_view code) { return is_one_of(code, {"NOAUTH", "WRONGPASS", "NOPERM", "DENIED"}); }

bool is_transient_code(std::string_view code) {
  return is_one_of(code, {"LOADING", "BUSY", "READONLY", "MASTERDOWN", "NOREPLICAS", "TRYAGAIN", "CLUSTERDOWN"});
}

[[noreturn]] void throw_refused(std::string_view code) {
  throw Error(ErrorCode::access_refused,
              "Redis refuses the user, the password or a right (" + std::string(code) +
                  "); correct the user, the password (TXINBOX_REDIS_PASSWORD for options from a URL) or the user's "
                  "rights, which components/redis/README.md lists");
}

}  // namespace

std::string_view text_of(const redisReply& reply) {
  return reply.str == nullptr ? std::string_view() : std::string_view(reply.str, reply.len);
}

std::string_view error_code_of(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ERROR) return {};
  const std::string_view text = text_of(reply);
  return text.substr(0, text.find(' '));
}

// The server's text can contain arguments, and so keys. Only its code is used.
void throw_if_error(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ERROR) return;
  const std::string code(error_code_of(reply));
  if (is_refusal(code)) throw_refused(code);
  if (is_one_of(code, {"MOVED", "ASK", "CROSSSLOT"})) {
    throw Error(ErrorCode::unsupported_database,
                "this server is a node of a Redis Cluster, which is not supported (" + code + ")");
  }
  if (code == "WRONGTYPE") {
    throw Error(ErrorCode::unknown_state,
                "a key of Redis is not of this library; give RedisOptions::prefix another value");
  }
  if (is_transient_code(code)) {
    throw LeaseStoreError(Kind::transient, "redis", code, "Redis cannot serve now: " + code);
  }
  // If a script lacks a right, Redis 7.0 answers ERR, and not NOPERM.
  throw LeaseStoreError(Kind::permanent, "redis", code,
                        "Redis refuses a step (" + code +
                            "); the reason can be a right that the user lacks, see "
                            "components/redis/README.md");
}

Connection::Connection(const RedisOptions& options)
    : context_(redisConnectWithTimeout(options.host.c_str(), options.port, as_timeval(options.timeout))) {
  if (!context_) throw std::bad_alloc();
  if (context_->err != 0) {
    throw LeaseStoreError(Kind::transient, "redis", "not_connected",
                          "Redis cannot be reached at " + options.host + ":" + std::to_string(options.port));
  }
  const bool waits = options.wait_replicas > 0;
  redisSetTimeout(context_.get(),
                  as_timeval(options.timeout + (waits ? options.replica_timeout : std::chrono::milliseconds())));
  redisEnableKeepAlive(context_.get());
  authenticate(options);
}

void Connection::authenticate(const RedisOptions& options) {
  // A server without a free connection answers the first command with ERR. For a PING, this is the only reason for ERR.
  const Reply ping = run({"PING"});
  const auto code = error_code_of(*ping);
  if (code == "ERR") {
    throw LeaseStoreError(Kind::transient, "redis", "not_connected", "Redis has no free connection");
  }
  const bool wants_password = code == "NOAUTH";
  if (!wants_password && code != "NOPERM") throw_if_error(*ping);
  if (!options.password.empty()) {
    const Reply answer =
        options.user.empty() ? run({"AUTH", options.password}) : run({"AUTH", options.user, options.password});
    if (answer->type == REDIS_REPLY_ERROR) {
      if (is_transient_code(error_code_of(*answer))) throw_if_error(*answer);
      throw_refused(error_code_of(*answer));
    }
  } else if (wants_password) {
    throw_refused(code);
  }
  if (options.database != 0) {
    const Reply answer = run({"SELECT", std::to_string(options.database)});
    if (error_code_of(*answer) == "ERR") {
      throw Error(ErrorCode::invalid_argument, "Redis has no database of this number");
    }
    throw_if_error(*answer);
  }
}

/// Writes to the socket without hiredis, because hiredis would end the process with SIGPIPE if the connection is lost.
void Connection::send(const std::vector<std::string_view>& arguments) {
  std::vector<const char*> values;
  std::vector<std::size_t> sizes;
  values.reserve(arguments.size());
  sizes.reserve(arguments.size());
  for (const std::string_view each : arguments) {
    values.push_back(each.data());
    sizes.push_back(each.size());
  }
  sds formatted = nullptr;  // redisFormatCommandArgv is three times slower
  const auto size =
      redisFormatSdsCommandArgv(&formatted, static_cast<int>(arguments.size()), values.data(), sizes.data());
  if (size < 0) throw std::bad_alloc();
  const std::unique_ptr<char, decltype(&redisFreeSdsCommand)> command(formatted, &redisFreeSdsCommand);
  std::string_view rest(command.get(), static_cast<std::size_t>(size));
  while (!rest.empty()) {
    const auto sent = ::send(context_->fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) throw lost(errno);
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

Reply Connection::run(const std::vector<std::string_view>& arguments) {
  send(arguments);
  void* reply = nullptr;
  if (redisGetReply(context_.get(), &reply) != REDIS_OK || reply == nullptr) {
    throw lost(context_->err == REDIS_ERR_IO ? errno : 0);
  }
  return Reply(static_cast<redisReply*>(reply));
}

}  // namespace redis
TXINBOX_NAMESPACE_END
}  // namespace txinbox
