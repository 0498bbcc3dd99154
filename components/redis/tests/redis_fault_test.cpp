// Faults of Redis: errors, missing answers and lost replies.

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/txinbox.hpp>

#include "redis_leases.hpp"
#include "redis_server.hpp"
#include "support/child_process.hpp"
#include "support/lease_subject.hpp"
#include "support/outcomes.hpp"
#include "support/proxy.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a server that has lost the scripts gets them again, at each step") {
  RedisLeases t;
  LeaseConsumer consumer = t.consumer();
  t.server.run({"SCRIPT", "FLUSH"});
  const auto handler = [&](Lease& lease) {
    t.server.run({"SCRIPT", "FLUSH"});
    lease.renew();
    t.server.run({"SCRIPT", "FLUSH"});
  };
  CHECK(consumer.consume(order, handler).outcome == consumed);
  t.server.run({"SCRIPT", "FLUSH"});
  CHECK_THROWS_AS((void)consumer.consume({.business_key = "2"},
                                         [&](Lease&) {
                                           t.server.run({"SCRIPT", "FLUSH"});
                                           throw std::runtime_error("no");
                                         }),
                  std::runtime_error);
  CHECK(consumer.consume({.business_key = "2"}, nothing).outcome == consumed);
}

TEST_CASE("if the server has closed a connection, the store connects again") {
  RedisLeases t;
  LeaseConsumer consumer = t.consumer({}, {.retry = once});
  for (int i = 0; i < 20; ++i) {
    const Message message{.business_key = "k" + std::to_string(i)};
    const auto handler = [&](Lease&) { t.server.run({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}); };
    CHECK(consumer.consume(message, handler).outcome == consumed);
  }
}

TEST_CASE("if the reply to a step is lost, the step is sent again and counts once") {
  RedisLeases t;
  Proxy proxy("redis://" + broker_address() + "/");
  RedisOptions options = redis_options_from_url(proxy.url());
  options.timeout = 10s;
  LeaseConsumer consumer(open_redis(options), "svc", {}, {.retry = once, .max_attempts = 3});
  CHECK(consumer.consume({.business_key = "first"}, nothing).outcome == consumed);  // the store is connected now
  SUBCASE("to the claim") {
    proxy.lose_reply();
    CHECK(consumer.consume(order, [&](Lease&) { CHECK(t.field("attempts") == "1"); }).outcome == consumed);
  }
  SUBCASE("to a renewal") {
    const auto handler = [&](Lease& lease) {
      proxy.lose_reply();
      lease.renew();
      CHECK(lease.remaining() > 50s);
    };
    CHECK(consumer.consume(order, handler).outcome == consumed);
  }
  SUBCASE("to the completion") {
    const auto handler = [&](Lease& lease) {
      lease.delivery().store("receipt");
      proxy.lose_reply();
    };
    CHECK(consumer.consume(order, handler).outcome == consumed);
    CHECK(consumer.consume(order, must_not_run).stored == "receipt");
  }
  SUBCASE("to a failure") {
    const auto handler = [&](Lease&) {
      proxy.lose_reply();
      throw std::runtime_error("no");
    };
    CHECK_THROWS_AS((void)consumer.consume(order, handler), std::runtime_error);
    CHECK(t.field("failures") == "1");
    CHECK(consumer.consume(order, nothing).outcome == consumed);
  }
  SUBCASE("to a failure that parks the message") {
    const auto handler = [&](Lease&) {
      proxy.lose_reply();
      throw Error(ErrorCode::rejected, "no");
    };
    CHECK(consumer.consume(order, handler).outcome == parked);
  }
  CHECK(proxy.lost() == 1);
}

TEST_CASE("if a server does not answer, the delivery ends after the time-outs, and the handler does not run") {
  RedisLeases t;
  Proxy proxy("redis://" + broker_address() + "/");
  RedisOptions options = redis_options_from_url(proxy.url());
  options.timeout = 100ms;
  LeaseConsumer consumer(open_redis(options), "svc", {}, {.retry = once});
  proxy.fall_silent();
  CHECK(class_of_error([&] { (void)consumer.consume(order, must_not_run); }) == "redis timeout");
  CHECK(thrown_by([&] { (void)consumer.consume(order, must_not_run); }) == "transient");
  proxy.fall_silent(false);
}

TEST_CASE("a handler learns that its lease is over, also while its heartbeat waits for a server that does not answer") {
  RedisLeases t;
  Proxy proxy("redis://" + broker_address() + "/");
  RedisOptions options = redis_options_from_url(proxy.url());
  options.timeout = 60s;  // the heartbeat waits longer than the lease lasts
  LeaseConsumer consumer(open_redis(options), "svc", {.length = 1s, .heartbeat = 100ms}, {.retry = once});
  const auto handler = [&](Lease& lease) {
    proxy.fall_silent();
    const auto give_up = std::chrono::steady_clock::now() + 50s;
    while (!lease.stop_token().stop_requested() && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::sleep_for(1ms);
    }
    CHECK(lease.stop_token().stop_requested());
    CHECK(lease.remaining() == 0ms);
    proxy.fall_silent(false);
  };
  CHECK(consumer.consume(order, handler).outcome == consumed);  // no other call has taken over the lease
}

TEST_CASE("a server that cannot be reached is a transient error") {
  RedisOptions options = RedisServer::options();
  options.port = 1;
  LeaseConsumer consumer(open_redis(options), "svc", {}, {.retry = once});
  CHECK(thrown_by([&] { (void)consumer.consume(order, must_not_run); }) == "transient");
  CHECK(class_of_error([&] { (void)consumer.consume(order, must_not_run); }) == "redis not_connected");
}

TEST_CASE("a server without memory refuses a lease and a completion, and neither counts as a failure") {
  RedisLeases t;
  LeaseConsumer consumer = t.consumer({}, {.max_attempts = 1});
  t.server.run({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
  t.server.run({"CONFIG", "SET", "maxmemory", "1"});
  CHECK(class_of_error([&] { (void)consumer.consume(order, must_not_run); }) == "redis OOM");
  CHECK(thrown_by([&] { (void)consumer.consume(order, must_not_run); }) == "other");
  t.server.run({"CONFIG", "SET", "maxmemory", "0"});
  const auto full_meanwhile = [&](Lease& lease) {
    t.server.run({"CONFIG", "SET", "maxmemory", "1"});
    lease.renew();
  };
  CHECK(class_of_error([&] { (void)consumer.consume(order, full_meanwhile); }) == "redis OOM");
  t.server.run({"CONFIG", "SET", "maxmemory", "0"});
  CHECK(t.field("state") == "consuming");
  CHECK(t.field("failures") == "0");
}

TEST_CASE("a server that became a replica is a transient error, and nothing is completed there") {
  RedisLeases t;
  LeaseConsumer consumer = t.consumer({}, {.retry = once});
  const auto handler = [&](Lease&) { t.server.run({"REPLICAOF", "127.0.0.1", "1"}); };
  CHECK(class_of_error([&] { (void)consumer.consume(order, handler); }) == "redis READONLY");
  CHECK(thrown_by([&] { (void)consumer.consume({.business_key = "2"}, must_not_run); }) == "transient");
  t.server.run({"REPLICAOF", "NO", "ONE"});
  CHECK(consumer.consume(order, must_not_run).outcome == in_progress);
}

TEST_CASE("with fewer replicas than wait_replicas nothing is acknowledged, not even a duplicate") {
  RedisLeases t;
  CHECK(t.consumer().consume(order, nothing).outcome == consumed);
  RedisOptions options = RedisServer::options();
  options.wait_replicas = 1;
  options.replica_timeout = 10ms;
  LeaseConsumer careful(open_redis(options), "svc", {}, {.retry = once});
  CHECK(class_of_error([&] { (void)careful.consume(order, must_not_run); }) == "redis too_few_replicas");
  CHECK(thrown_by([&] { (void)careful.consume({.business_key = "2"}, must_not_run); }) == "transient");
}

TEST_CASE("another database number has other keys, and a number that does not exist is refused") {
  RedisLeases t;
  RedisOptions options = RedisServer::options();
  options.database = 3;
  CHECK(LeaseConsumer(open_redis(options), "svc").consume(order, nothing).outcome == consumed);
  CHECK(t.consumer().consume(order, nothing).outcome == consumed);
  options.database = 1000;
  LeaseConsumer consumer(open_redis(options), "svc");
  CHECK(thrown_by([&] { (void)consumer.consume(order, must_not_run); }) == "invalid_argument");
}

TEST_CASE("a child of fork must open its own store") {
  RedisLeases t;
  LeaseConsumer consumer = t.consumer();
  CHECK(consumer.consume(order, nothing).outcome == consumed);
  CHECK(in_process([&] {
          try {
            (void)consumer.consume({.business_key = "2"}, nothing);
          } catch (const Error& error) {
            if (error.code() == ErrorCode::forked) return;
            throw;
          }
          throw std::runtime_error("the child used the connection of its parent");
        }) == 0);
  CHECK(consumer.consume(order, must_not_run).outcome == duplicate);
}

}  // namespace
}  // namespace txinbox::test
