#include "redis_store.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include <txinbox/error.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace redis {

using std::chrono::milliseconds;

namespace {

/// Whether a part of the prefix after a colon is a number. It could be taken for the length of a consumer's name: the
/// prefix "x" with the consumer "5:abcde" and the prefix "x:7" with the consumer "abcde" would have the same keys.
bool has_number_after_colon(std::string_view prefix) {
  for (auto colon = prefix.find(':'); colon != std::string_view::npos; colon = prefix.find(':')) {
    prefix.remove_prefix(colon + 1);
    const auto part = prefix.substr(0, prefix.find(':'));
    if (!part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos) return true;
  }
  return false;
}

RedisOptions checked(RedisOptions options) {
  const auto refuse = [](const char* text) { throw Error(ErrorCode::invalid_argument, text); };
  if (options.host.empty() || options.port == 0) refuse("RedisOptions::host and port must not be empty or 0");
  if (options.database < 0) refuse("RedisOptions::database must be at least 0");
  if (options.prefix.empty()) refuse("RedisOptions::prefix must not be empty");
  if (has_number_after_colon(options.prefix)) {
    refuse("a part of RedisOptions::prefix after a colon must not be a number; write shop:no7 instead of shop:7");
  }
  if (options.keep < std::chrono::seconds(1) || options.keep > std::chrono::days(36'500)) {
    refuse("RedisOptions::keep must be from 1 s to 100 years");
  }
  const auto is_valid = [](milliseconds timeout) {
    return timeout >= milliseconds(1) && timeout <= std::chrono::days(1);
  };
  if (!is_valid(options.timeout) || !is_valid(options.replica_timeout)) {
    refuse("RedisOptions::timeout and replica_timeout must be from 1 ms to a day");
  }
  if (options.wait_replicas < 0) refuse("RedisOptions::wait_replicas must be at least 0");
  return options;
}

Error not_understood() {
  return {ErrorCode::unknown_state,
          "a key of Redis has a state or a value that this version does not know; upgrade the library"};
}

std::int64_t number_in(const redisReply& list, std::size_t index) {
  if (index >= list.elements) throw not_understood();
  const std::string_view text = text_of(*list.element[index]);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) throw not_understood();
  return number;
}

LeaseAnswer answer_of(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements == 0) throw not_understood();
  const std::string_view state = text_of(*reply.element[0]);
  if (state == "granted") {
    return {.claim = Claim::claimed,
            .fence = number_in(reply, 1),
            .taken_over = number_in(reply, 3) != 0,
            .remaining = milliseconds(number_in(reply, 2))};
  }
  if (state == "in_progress") {
    return {.claim = Claim::in_progress, .remaining = milliseconds(number_in(reply, 1))};
  }
  if (state == "consumed") {
    LeaseAnswer answer{.claim = Claim::already_consumed, .age = milliseconds(number_in(reply, 1))};
    if (number_in(reply, 2) == 1 && reply.elements > 3) answer.result = text_of(*reply.element[3]);
    return answer;
  }
  if (state == "conflict") return {.claim = Claim::conflict};
  if (state == "parked") return {.claim = Claim::parked};
  throw not_understood();
}

bool yes_or_no(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_INTEGER) throw not_understood();
  return reply.integer == 1;
}

constexpr std::string_view flag(bool value) { return value ? "1" : "0"; }

std::string key_of(const RedisOptions& options, const LeaseRequest& request) {
  // Because of the length, the pairs ("a:b", "c") and ("a", "b:c") have different names. The first number after a
  // colon ends the prefix, because no prefix contains one.
  std::string key = options.prefix + ":" + std::to_string(request.consumer.size()) + ":";
  return key.append(request.consumer).append(":").append(request.business_key);
}

}  // namespace

RedisStore::RedisStore(RedisOptions options) : options_(checked(std::move(options))), process_(::getpid()) {}

std::string RedisStore::time_to_live(const LeaseRequest& request) const {
  return std::to_string(std::max(options_.keep, 2 * request.lease).count());
}

LeaseAnswer RedisStore::claim(const LeaseRequest& request) {
  const std::string lease = std::to_string(request.lease.count());
  const std::string valid_for = std::to_string(std::max(request.valid_for, milliseconds(0)).count());
  const std::string keep = time_to_live(request);
  return answer_of(
      *run(Scripts::get().claim, request,
           {request.token, lease, keep, request.content_hash, request.message_id, request.owner, valid_for}));
}

bool RedisStore::renew(const LeaseRequest& request, std::int64_t fence) {
  return yes_or_no(
      *run(Scripts::get().renew, request,
           {request.token, std::to_string(fence), time_to_live(request), std::to_string(request.lease.count())}));
}

bool RedisStore::complete(const LeaseRequest& request, std::int64_t fence, const std::optional<std::string>& result) {
  return yes_or_no(*run(Scripts::get().complete, request,
                        {request.token, std::to_string(fence), time_to_live(request), flag(result.has_value()),
                         result ? std::string_view(*result) : std::string_view()}));
}

bool RedisStore::fail(const LeaseRequest& request, std::int64_t fence, const LeaseFailure& failure) {
  return yes_or_no(*run(Scripts::get().fail, request,
                        {request.token, std::to_string(fence), time_to_live(request), flag(failure.counts),
                         flag(failure.rejected), std::to_string(failure.max_attempts), failure.error_class}));
}

/// If the reply is lost, it is not known whether the step has run. So the step is sent again on a new connection. Each
/// script recognizes what its first run has written.
Reply RedisStore::run(const Script& script, const LeaseRequest& request, const Arguments& arguments) {
  if (process_ != ::getpid()) {
    throw Error(ErrorCode::forked, "the parent process opened this store before fork(); open another one in the child");
  }
  const std::string key = key_of(options_, request);
  std::unique_ptr<Connection> connection = take_idle();
  for (bool again = false;; again = true) {
    if (!connection) connection = std::make_unique<Connection>(options_);
    try {
      Reply reply = run_on(*connection, script, key, arguments);
      throw_if_error(*reply);
      if (options_.wait_replicas > 0) wait_for_replicas(*connection);
      give_back(std::move(connection));
      return reply;
    } catch (const ConnectionLost&) {
      connection.reset();
      const std::lock_guard lock(mutex_);
      idle_.clear();  // the other connections are probably lost, too
      if (again) throw;
    }
  }
}

Reply RedisStore::run_on(Connection& connection, const Script& script, const std::string& key,
                         const Arguments& arguments) const {
  Arguments command{"EVALSHA", script.sha, "1", key};
  command.insert(command.end(), arguments.begin(), arguments.end());
  Reply reply = connection.run(command);
  if (error_code_of(*reply) != "NOSCRIPT") return reply;
  command[0] = "EVAL";
  command[1] = script.text;
  return connection.run(command);
}

/// WAIT waits for everything that the server has written before the last command of this connection. So it also works
/// for a script that has only read data of other clients.
void RedisStore::wait_for_replicas(Connection& connection) const {
  const Reply reply = connection.run(
      {"WAIT", std::to_string(options_.wait_replicas), std::to_string(options_.replica_timeout.count())});
  throw_if_error(*reply);
  if (reply->type == REDIS_REPLY_INTEGER && reply->integer >= options_.wait_replicas) return;
  throw LeaseStoreError(LeaseStoreError::Kind::transient, "redis", "too_few_replicas",
                        "fewer replicas of Redis than wait_replicas have confirmed the step in time");
}

std::unique_ptr<Connection> RedisStore::take_idle() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return nullptr;
  auto connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

void RedisStore::give_back(std::unique_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < options_.idle_connections) idle_.push_back(std::move(connection));
}

}  // namespace redis

std::shared_ptr<LeaseStore> open_redis(const RedisOptions& options) {
  return std::make_shared<redis::RedisStore>(options);
}

std::shared_ptr<LeaseStore> open_redis(std::string_view url) { return open_redis(redis_options_from_url(url)); }

TXINBOX_NAMESPACE_END
}  // namespace txinbox
