// Refusals of the store and of the server: values of other programs, and users without the rights.

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/txinbox.hpp>

#include "redis_leases.hpp"
#include "redis_server.hpp"
#include "support/lease_subject.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a key that another program has made is refused, and is not changed") {
  RedisLeases t;
  LeaseConsumer consumer = t.consumer();
  const auto check_refused = [&](const std::vector<std::string>& make) {
    t.server.run({"DEL", key_of_order});
    t.server.run(make);
    const std::string before = t.server.run({"DUMP", key_of_order});
    CHECK(thrown_by([&] { (void)consumer.consume(order, must_not_run); }) == "unknown_state");
    CHECK(t.server.run({"DUMP", key_of_order}) == before);
    CHECK(t.server.run({"PTTL", key_of_order}) == "-1");
  };
  check_refused({"HSET", key_of_order, "name", "bob"});
  check_refused({"HSET", key_of_order, "state", "consuming", "ends", "0"});
  check_refused({"RPUSH", key_of_order, "bob"});
  for (const char* value : {"", "mine", "txinbox1 ", "txinbox1 \n", "txinbox1 {}\n", "txinbox1 7\n", "txinbox1 {\n",
                            R"({"state":"consuming"})"}) {
    CAPTURE(value);
    check_refused({"SET", key_of_order, value});
  }
}

TEST_CASE("a value that another program has made meanwhile is refused by each step, and is not changed") {
  RedisLeases t;
  LeaseConsumer consumer = t.consumer();
  const auto make_foreign = [&] {
    t.server.run({"DEL", key_of_order});
    t.server.run({"HSET", key_of_order, "token", "bob"});
  };
  CHECK(thrown_by([&] {
          (void)consumer.consume(order, [&](Lease& lease) {
            make_foreign();
            lease.renew();
          });
        }) == "unknown_state");
  CHECK(t.server.run({"HGETALL", key_of_order}) == "token bob");
  t.server.run({"DEL", key_of_order});
  CHECK(thrown_by([&] { (void)consumer.consume(order, [&](Lease&) { make_foreign(); }); }) == "unknown_state");
  CHECK(t.server.run({"HGETALL", key_of_order}) == "token bob");
}

TEST_CASE("a state of a later version is refused") {
  RedisLeases t;
  LeaseConsumer consumer = t.consumer();
  CHECK(consumer.consume(order, nothing).outcome == consumed);
  t.server.set_field(key_of_order, "state", "postponed");
  CHECK(thrown_by([&] { (void)consumer.consume(order, must_not_run); }) == "unknown_state");
}

// components/redis/README.md lists these rights.
const std::vector<std::string> rights{"+ping", "+evalsha", "+eval", "+time", "+get", "+set"};

void set_user(RedisServer& server, const std::string& without) {
  std::vector<std::string> command{"ACL", "SETUSER", "worker", "reset", "on", ">secret", "~txinbox:*"};
  for (const std::string& each : rights) {
    if (each != without) command.push_back(each);
  }
  server.run(command);
}

RedisOptions worker() {
  RedisOptions options = RedisServer::options();
  options.user = "worker";
  options.password = "secret";
  return options;
}

TEST_CASE("a user with the rights of the README can do each step, and each of these rights is necessary") {
  RedisLeases t;
  set_user(t.server, "");
  LeaseConsumer consumer(open_redis(worker()), "svc", {}, {.retry = once});
  const auto handler = [&](Lease& lease) {
    lease.renew();
    lease.delivery().store("done");
  };
  Message message = order;
  CHECK(consumer.consume(message, handler).outcome == consumed);
  message.valid_for = 1ms;
  std::this_thread::sleep_for(5ms);
  CHECK(consumer.consume(message, handler).outcome == consumed);
  CHECK_THROWS_AS((void)consumer.consume({.business_key = "2"}, [](Lease&) { throw std::runtime_error("no"); }),
                  std::runtime_error);
  for (const std::string& each : rights) {
    if (each == "+ping") continue;  // PING only shows that the server has a free connection
    CAPTURE(each);
    set_user(t.server, each);
    t.server.run({"SCRIPT", "FLUSH"});
    LeaseConsumer limited(open_redis(worker()), "svc", {}, {.retry = once});
    const std::string error = class_of_error([&] { (void)limited.consume({.business_key = each}, must_not_run); });
    CHECK((error == "access_refused" || error == "redis ERR"));  // Redis 7.0 answers ERR for a command inside a script
    CHECK(t.server.run({"EXISTS", "txinbox:3:svc:" + each}) == "0");
  }
  t.server.run({"ACL", "DELUSER", "worker"});
}

TEST_CASE("a step whose user lacks a right changes nothing") {
  RedisLeases t;
  for (const std::string& each : rights) {
    if (each == "+ping") continue;
    CAPTURE(each);
    t.server.run({"DEL", key_of_order});
    set_user(t.server, "");
    LeaseConsumer consumer(open_redis(worker()), "svc", {}, {.retry = once});
    std::string before;
    const auto handler = [&](Lease& lease) {
      set_user(t.server, each);
      t.server.run({"SCRIPT", "FLUSH"});
      before = t.server.run({"GET", key_of_order});
      CHECK(class_of_error([&] { lease.renew(); }) != "nothing");
      CHECK(t.server.run({"GET", key_of_order}) == before);
      lease.delivery().store("done");
    };
    CHECK(class_of_error([&] { (void)consumer.consume(order, handler); }) != "nothing");
    CHECK(t.server.run({"GET", key_of_order}) == before);
  }
  t.server.run({"ACL", "DELUSER", "worker"});
}

TEST_CASE("a wrong password, no password and an unknown user stop the consumer") {
  RedisLeases t;
  RedisOptions options = RedisServer::options();
  SUBCASE("wrong") { options.password = "wrong"; }
  SUBCASE("none") { options.password.clear(); }
  SUBCASE("unknown user") { options.user = "nobody"; }
  LeaseConsumer consumer(open_redis(options), "svc");
  try {
    (void)consumer.consume(order, must_not_run);
    FAIL("the server accepted the user");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::access_refused);
    CHECK(action_for(std::current_exception()) == Action::stop);
    CHECK(std::string(error.what()).find(RedisServer::password()) == std::string::npos);
  }
}

}  // namespace
}  // namespace txinbox::test
