// Measures the cost of a lease in Redis: claim and completion by LeaseConsumer, compared with the same two EVALSHA by
// hand. bench/run.sh runs this program in the same way as txinbox_bench.

#include <hiredis/hiredis.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <txinbox/lease_consumer.hpp>
#include <txinbox/redis.hpp>

#include "measure.hpp"
#include "program.hpp"
#include "scripts.hpp"

namespace txinbox::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* password_variable = "TXINBOX_REDIS_PASSWORD";

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

/// Uses hiredis in the same way as a service without a library for leases.
class Redis {
 public:
  explicit Redis(int port) : context_(redisConnect("127.0.0.1", port), &redisFree) {
    if (!context_ || context_->err != 0) throw std::runtime_error("Redis cannot be reached");
    if (const char* password = std::getenv(password_variable)) run("AUTH", password);
  }

  template <std::size_t N>
  Reply run(const std::array<std::string_view, N>& words) {
    std::array<const char*, N> values;
    std::array<std::size_t, N> sizes;
    for (std::size_t i = 0; i < N; ++i) {
      values[i] = words[i].data();
      sizes[i] = words[i].size();
    }
    Reply reply(
        static_cast<redisReply*>(redisCommandArgv(context_.get(), static_cast<int>(N), values.data(), sizes.data())));
    if (!reply) throw std::runtime_error("the connection to Redis is lost");
    if (reply->type == REDIS_REPLY_ERROR) throw std::runtime_error(std::string(reply->str, reply->len));
    return reply;
  }

  template <class... Words>
  Reply run(Words... words) requires(sizeof...(Words) > 0) {
    return run(std::array<std::string_view, sizeof...(Words)>{words...});
  }

 private:
  std::unique_ptr<redisContext, decltype(&redisFree)> context_;
};

void expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

/// Claims and completes a key with the scripts of the component.
class ByHand {
 public:
  explicit ByHand(int port) : redis_(port) {
    for (const auto* script : {&scripts_.claim, &scripts_.complete}) redis_.run("SCRIPT", "LOAD", script->text);
  }

  void consume(std::string_view key) {
    const std::string name = fmt::format("txinbox:4:hand:{}", key);
    constexpr std::string_view lease = "60000";
    constexpr std::string_view keep = "86400000";
    const std::string_view token = key;
    const Reply claimed =
        redis_.run("EVALSHA", scripts_.claim.sha, "1", name, token, lease, keep, "", "", "bench", "0");
    expect(claimed->type == REDIS_REPLY_ARRAY && claimed->elements > 1, "the claim has no answer");
    const redisReply& state = *claimed->element[0];
    expect(std::string_view(state.str, state.len) == "granted", "a key was not granted");
    const std::string_view fence(claimed->element[1]->str, claimed->element[1]->len);
    const Reply completed = redis_.run("EVALSHA", scripts_.complete.sha, "1", name, token, fence, keep, "0", "");
    expect(completed->type == REDIS_REPLY_INTEGER && completed->integer == 1, "a key was not completed");
  }

 private:
  const redis::Scripts& scripts_ = redis::Scripts::get();
  Redis redis_;
};

struct Options {
  int port = 0;
  bool relaxed = false;
  int rounds = 21;
  long slot_ms = 100;
};

/// Sets the durability of the server. Durable: each step is on the disk before its reply. Relaxed: there is no
/// append-only file.
void configure(Redis& redis, const Options& options) {
  redis.run("FLUSHALL", "SYNC");
  redis.run("CONFIG", "SET", "appendfsync", "always");
  redis.run("CONFIG", "SET", "appendonly", options.relaxed ? "no" : "yes");
}

Json measure(const Options& options) {
  Redis redis(options.port);
  configure(redis, options);
  ByHand by_hand(options.port);
  LeaseConsumer consumer(open_redis(fmt::format("redis://127.0.0.1:{}", options.port)), "lease");
  const std::vector<std::pair<std::string, std::function<void(const std::string&)>>> variants{
      {"by_hand", [&](const std::string& key) { by_hand.consume(key); }},
      {"lease_consumer",
       [&](const std::string& key) {
         const Result result = consumer.consume({.business_key = key}, [](Lease&) {});
         expect(result.outcome == Outcome::consumed, "a message was not consumed");
       }},
  };

  long long consumed = 0;
  const auto run = [&](std::size_t variant, int round, int messages) {
    const auto start = Clock::now();
    for (int i = 0; i < messages; ++i) variants[variant].second(fmt::format("order-{}-{}", round, i));
    const double time = microseconds_since(start) / messages;
    consumed += messages;
    return time;
  };
  constexpr int warm_up = 200;
  const double each = run(0, -1, warm_up);
  run(1, -1, warm_up);
  const int messages = std::max(50, static_cast<int>(static_cast<double>(options.slot_ms) * 1e3 / each));

  Json times = {{"by_hand", Json::array()}, {"lease_consumer", Json::array()}};
  Progress progress("rounds", options.rounds);
  for (int round = 0; round < options.rounds; ++round) {
    rotated(variants.size(), round,
            [&](std::size_t i) { times[variants[i].first].push_back(run(i, round, messages)); });
    progress.step();
  }
  expect(redis.run("DBSIZE")->integer == consumed, "Redis does not have one key for each message");
  return {{"messages_per_round", messages}, {"microseconds", times}};
}

}  // namespace
}  // namespace txinbox::bench

int main(int argc, char** argv) {
  using namespace txinbox::bench;
  CLI::App app("Measures what a lease in Redis costs. The password is in TXINBOX_REDIS_PASSWORD");
  Options options;
  app.add_option("--port", options.port)->required();
  app.add_flag("--relaxed", options.relaxed, "Without an append-only file");
  app.add_option("--rounds", options.rounds);
  app.add_option("--slot-ms", options.slot_ms);
  CLI11_PARSE(app, argc, argv);
  return print_figures("txinbox_bench_redis", [&] { return measure(options); });
}
