// Behaviour that only the Redis store has: its options, its errors, and keys that Redis removes.

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <txinbox/txinbox.hpp>

#include "brokers/command_tests.hpp"
#include "redis_server.hpp"
#include "support/environment.hpp"
#include "support/lease_subject.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a URL contains the options, and an invalid part is refused") {
  ::setenv("TXINBOX_REDIS_PASSWORD", "secret", 1);
  const RedisOptions options = redis_options_from_url(
      "redis://app%40shop@[::1]:6380/3?prefix=inbox&keep=3600&timeout=250&wait_replicas=1&replica_timeout=50");
  CHECK(options.user == "app@shop");
  CHECK(options.host == "::1");
  CHECK(options.port == 6380);
  CHECK(options.database == 3);
  CHECK(options.password == "secret");
  CHECK(options.prefix == "inbox");
  CHECK(options.keep == 1h);
  CHECK(options.timeout == 250ms);
  CHECK(options.wait_replicas == 1);
  CHECK(options.replica_timeout == 50ms);
  CHECK(redis_options_from_url("redis://cache").port == 6379);
  for (const char* wrong : {"redis://", "redis://a:b@host", "rediss://host", "http://host", "redis://host:0x",
                            "redis://host:70000", "redis://host/one", "redis://host?secret=1", "redis://host?keep",
                            "redis://host?keep=-1", "redis://%zz", "redis://[::1"}) {
    CAPTURE(wrong);
    CHECK(thrown_by([&] { (void)redis_options_from_url(wrong); }) == "invalid_argument");
  }
  for (const char* wrong : {"redis://host:0", "redis://host?keep=0", "redis://host?timeout=0",
                            "redis://host?prefix=", "redis://host?replica_timeout=0"}) {
    CAPTURE(wrong);
    CHECK(thrown_by([&] { (void)open_redis(wrong); }) == "invalid_argument");
  }
  const auto refused = [](const RedisOptions& options) {
    return thrown_by([&] { (void)open_redis(options); }) == "invalid_argument";
  };
  CHECK(refused({.host = "host", .keep = std::chrono::milliseconds::max()}));
  CHECK(refused({.host = "host", .timeout = std::chrono::milliseconds::max()}));
  CHECK(refused({.host = "host", .replica_timeout = std::chrono::milliseconds::max()}));
}

TEST_CASE("options that need the tables of the database are refused with a store") {
  const auto store = open_redis("redis://localhost");
  CHECK(thrown_by([&] { LeaseConsumer(store, "svc", {}, {.count_starts = true}); }) == "invalid_argument");
  CHECK(thrown_by([&] { LeaseConsumer(store, "svc", {}, {.keep_error_text = true}); }) == "invalid_argument");
  CHECK(thrown_by([&] { LeaseConsumer(std::shared_ptr<LeaseStore>(), "svc"); }) == "invalid_argument");
}

TEST_CASE("similar pairs of consumer and key have different keys in Redis") {
  RedisServer server;
  const auto store = open_redis(RedisServer::options());
  CHECK(LeaseConsumer(store, "a:b").consume({.business_key = "c"}, nothing).outcome == consumed);
  CHECK(LeaseConsumer(store, "a").consume({.business_key = "b:c"}, nothing).outcome == consumed);
  CHECK(server.keys().size() == 2);
}

TEST_CASE("a prefix that other keys could begin with is refused") {
  RedisOptions options;
  for (const char* wrong : {"x:7", "x:7:", "x:7:y", ":1", "x:y:64", "x:007"}) {
    CAPTURE(wrong);
    options.prefix = wrong;
    CHECK(thrown_by([&] { (void)open_redis(options); }) == "invalid_argument");
  }
  for (const char* right : {"x", "7", "x7", "x:y", "x:y7", "x:7y", "x:", "x::y", "7:x"}) {
    CAPTURE(right);
    options.prefix = right;
    CHECK(thrown_by([&] { (void)open_redis(options); }) == "nothing");
  }
}

TEST_CASE("a message id with any characters is kept, and its result has any bytes") {
  RedisServer server;
  LeaseConsumer consumer(open_redis(RedisServer::options()), "svc");
  const Message message{.business_key = "order123", .message_id = "a\"\n\\\x01\xc3\xa4"};
  const std::string result("\n\0\xff txinbox1 {}\n", 17);
  CHECK(consumer.consume(message, [&](Lease& lease) { lease.delivery().store(result); }).outcome == consumed);
  CHECK(consumer.consume(message, must_not_run).stored == result);
  CHECK(server.field("txinbox:3:svc:order123", "id") == message.message_id);
}

TEST_CASE("the time to live of a key is `keep`, and at least two leases") {
  RedisServer server;
  RedisOptions options = RedisServer::options();
  options.keep = 100s;
  const auto store = open_redis(options);
  const auto lives = [&] { return std::stoll(server.run({"PTTL", "txinbox:3:svc:order123"})); };
  CHECK(LeaseConsumer(store, "svc").consume(order, [&](Lease&) { CHECK(lives() > 119'000); }).outcome == consumed);
  CHECK(lives() > 0);
  CHECK(lives() <= 120'000);
  LeaseConsumer quick(store, "svc", {.length = 1s});
  CHECK_THROWS_AS((void)quick.consume({.business_key = "2"}, [](Lease&) { throw std::runtime_error("no"); }),
                  std::runtime_error);
  const auto left = std::stoll(server.run({"PTTL", "txinbox:3:svc:2"}));
  CHECK((left > 0 && left <= 100'000));
}

TEST_CASE("a result of the maximum length is returned") {
  RedisServer server;
  constexpr std::size_t most = 1 << 20;
  LeaseConsumer consumer(open_redis(RedisServer::options()), "svc", {}, {.max_result = most});
  const std::string result(most, '\0');
  CHECK(consumer.consume(order, [&](Lease& lease) { lease.delivery().store(result); }).outcome == consumed);
  CHECK(consumer.consume(order, must_not_run).stored == result);
}

TEST_CASE("if Redis has removed a key, its message runs again with a greater fence") {
  RedisServer server;
  LeaseConsumer consumer(open_redis(RedisServer::options()), "svc");
  std::int64_t fence = 0;
  CHECK(consumer.consume(order, [&](Lease& lease) { fence = lease.fence(); }).outcome == consumed);
  server.run({"FLUSHALL"});
  CHECK(consumer.consume(order, [&](Lease& lease) { CHECK(lease.fence() > fence); }).outcome == consumed);
}

TEST_CASE("the example charges once" * doctest::skip(!has_variable("TXINBOX_EXAMPLE"))) {  // it may not be built
  RedisServer server;
  CHECK(output_of_example(variable("TXINBOX_EXAMPLE"), "redis://" + broker_address()) ==
        "consumed: receipt for charge123\nalready_consumed: receipt for charge123\n");
}

}  // namespace
}  // namespace txinbox::test
