#include "redis_server.hpp"

#include <algorithm>
#include <fstream>

namespace txinbox::test {

namespace {

std::string text_of(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_INTEGER) return std::to_string(reply.integer);
  if (reply.type != REDIS_REPLY_ARRAY) return reply.str == nullptr ? "" : std::string(reply.str, reply.len);
  std::string all;
  for (std::size_t i = 0; i < reply.elements; ++i) all += (i == 0 ? "" : " ") + text_of(*reply.element[i]);
  return all;
}

}  // namespace

std::string RedisServer::password() {
  std::string word;
  std::ifstream(variable("TXINBOX_BROKER_FOLDER") + "/tls/password") >> word;
  ::setenv("TXINBOX_REDIS_PASSWORD", word.c_str(), 1);
  return word;
}

RedisOptions RedisServer::options() {
  RedisOptions options = redis_options_from_url("redis://" + broker_address());
  options.timeout = std::chrono::seconds(10);  // long enough for a slow machine
  return options;
}

void RedisServer::control(const std::string& what) {
  const std::string command = variable("TXINBOX_BROKER_SCRIPT") + " " + what + " " + variable("TXINBOX_BROKER_FOLDER") +
                              (what == "start" ? " " + variable("TXINBOX_BROKER_PORT") : "") + " >&2";
  if (std::system(command.c_str()) != 0) throw std::runtime_error("the server: " + what);  // NOLINT(cert-env33-c)
}

RedisServer::Reply RedisServer::ask(const std::vector<std::string>& command) {
  std::vector<const char*> values;
  std::vector<std::size_t> sizes;
  for (const std::string& each : command) {
    values.push_back(each.data());
    sizes.push_back(each.size());
  }
  return Reply(static_cast<redisReply*>(
      redisCommandArgv(context_.get(), static_cast<int>(command.size()), values.data(), sizes.data())));
}

std::string RedisServer::run(const std::vector<std::string>& command) {
  Reply reply = context_ ? ask(command) : nullptr;
  if (!reply) {  // the first command, or the server was restarted
    const RedisOptions server = options();
    context_.reset(redisConnect(server.host.c_str(), port_ != 0 ? port_ : server.port));
    if (!ask({"AUTH", server.password})) throw std::runtime_error("no server");
    reply = ask(command);
  }
  if (!reply) throw std::runtime_error("no reply");
  if (reply->type == REDIS_REPLY_ERROR) throw std::runtime_error(text_of(*reply));
  return text_of(*reply);
}

std::string RedisServer::field(const std::string& key, const std::string& name) {
  return run({"EVAL",
              "local value = redis.call('GET', KEYS[1]) if not value then return '' end "
              "return cjson.decode(string.sub(value, 10, string.find(value, '\\n', 1, true) - 1))[ARGV[1]] or ''",
              "1", key, name});
}

void RedisServer::set_field(const std::string& key, const std::string& name, const std::string& value) {
  run({"EVAL",
       "local value = redis.call('GET', KEYS[1]) local line_end = string.find(value, '\\n', 1, true) "
       "local row = cjson.decode(string.sub(value, 10, line_end - 1)) row[ARGV[1]] = ARGV[2] "
       "return redis.call('SET', KEYS[1], 'txinbox1 ' .. cjson.encode(row) .. string.sub(value, line_end), 'KEEPTTL')",
       "1", key, name, value});
}

std::vector<std::string> RedisServer::keys() {
  run({"PING"});
  const Reply reply = ask({"KEYS", "*"});
  std::vector<std::string> names;
  for (std::size_t i = 0; i < reply->elements; ++i) names.push_back(text_of(*reply->element[i]));
  std::ranges::sort(names);
  return names;
}

}  // namespace txinbox::test
