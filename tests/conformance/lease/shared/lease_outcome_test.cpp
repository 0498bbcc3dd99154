// The outcome of a delivery under a lease, on the database and on each lease store.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/txinbox.hpp>

#include "support/lease_subject.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a handler runs once under a lease, and duplicates get its result") {
  const LeaseSubject t;
  LeaseConsumer consumer = t.consumer();
  int runs = 0;
  const auto handler = [&](Lease& lease) {
    ++runs;
    CHECK(lease.message().business_key == "order123");
    CHECK(lease.fence() > 0);
    CHECK(lease.remaining() > 5s);
    CHECK(lease.remaining() <= 60s);
    CHECK(t.state() == "consuming");
    lease.delivery().store("receipt 7");
  };
  const Result first = consumer.consume(order, handler);
  CHECK(first.outcome == consumed);
  CHECK(first.stored == "receipt 7");
  CHECK(t.state() == "consumed");
  for (int i = 0; i < 5; ++i) {
    const Result again = consumer.consume(order, handler);
    CHECK(again.outcome == duplicate);
    CHECK(again.stored == "receipt 7");
    REQUIRE(again.age);
    CHECK(*again.age < 5min);
  }
  CHECK(runs == 1);
}

TEST_CASE("while a lease is held, other deliveries return in_progress and the remaining time of the lease") {
  const LeaseSubject t;
  LeaseConsumer consumer = t.consumer();
  const auto handler = [&](Lease&) {
    const Result lease = t.consumer().consume(order, must_not_run);
    CHECK(lease.outcome == in_progress);
    CHECK(lease.retry_after > 5s);
    CHECK(lease.retry_after <= 60s);
    CHECK(action_for(lease) == Action::redeliver);
    CHECK(t.other_consumer().consume(order, nothing).outcome == consumed);
  };
  CHECK(consumer.consume(order, handler).outcome == consumed);
}

TEST_CASE("another content of a key that is leased or consumed is a conflict") {
  const LeaseSubject t;
  LeaseConsumer consumer = t.consumer();
  const Message original{.business_key = "order123", .content = "100"};
  const Message other{.business_key = "order123", .content = "999"};
  CHECK(consumer
            .consume(original,
                     [&](Lease&) {
                       CHECK(consumer.consume(other, must_not_run).outcome == conflict);
                       t.let_run_out();
                       CHECK(consumer.consume(other, must_not_run).outcome == conflict);
                     })
            .outcome == consumed);
  CHECK(consumer.consume(other, must_not_run).outcome == conflict);
  CHECK(consumer.consume(original, must_not_run).outcome == duplicate);
}

TEST_CASE("an expired or released lease and a parked message do not go to another content") {
  const LeaseSubject t;
  LeaseConsumer consumer = t.consumer();
  const Message original{.business_key = "order123", .content = "100"};
  const Message other{.business_key = "order123", .content = "999"};
  const Message without{.business_key = "order123"};
  const auto fail = [](Lease&) { throw std::runtime_error("no"); };
  SUBCASE("expired") {
    const auto lose_it = [&](Lease&) {
      t.let_run_out();
      CHECK(consumer.consume(other, must_not_run).outcome == conflict);
      CHECK(consumer.consume(original, nothing).outcome == consumed);
    };
    CHECK(thrown_by([&] { (void)consumer.consume(original, lose_it); }) == "lease_lost");
    CHECK(consumer.consume(other, must_not_run).outcome == conflict);
  }
  SUBCASE("released") {
    CHECK_THROWS_AS((void)consumer.consume(original, fail), std::runtime_error);
    CHECK(consumer.consume(other, must_not_run).outcome == conflict);
    CHECK(t.state() == "consuming");
    CHECK(consumer.consume(original, nothing).outcome == consumed);
  }
  SUBCASE("released by a message without content, which keeps the hash") {
    CHECK_THROWS_AS((void)consumer.consume(original, fail), std::runtime_error);
    CHECK_THROWS_AS((void)consumer.consume(without, fail), std::runtime_error);
    CHECK(consumer.consume(other, must_not_run).outcome == conflict);
    CHECK(consumer.consume(without, nothing).outcome == consumed);
  }
  SUBCASE("parked") {
    CHECK(consumer.consume(original, [](Lease&) { throw Error(ErrorCode::rejected, "no"); }).outcome == parked);
    CHECK(consumer.consume(other, must_not_run).outcome == conflict);
    CHECK(consumer.consume(original, must_not_run).outcome == parked);
  }
}

TEST_CASE("failures under a lease are counted, and max_attempts of them park the message") {
  const LeaseSubject t;
  LeaseConsumer consumer = t.consumer({}, {.max_attempts = 2});
  const auto failing = [](Lease&) { throw std::invalid_argument("no"); };
  CHECK_THROWS_AS((void)consumer.consume(order, failing), std::invalid_argument);
  const Result last = consumer.consume(order, failing);
  CHECK(last.outcome == parked);
  CHECK(error_class(last.error) == "std::invalid_argument");
  CHECK(t.state() == "parked");
  CHECK(consumer.consume(order, must_not_run).outcome == parked);
}

TEST_CASE("a rejected message is parked immediately") {
  const LeaseSubject t;
  LeaseConsumer consumer = t.consumer();
  const Result rejected = consumer.consume(order, [](Lease&) { throw Error(ErrorCode::rejected, "not for us"); });
  CHECK(rejected.outcome == parked);
  CHECK(code_of(rejected.error) == ErrorCode::rejected);
  CHECK(consumer.consume(order, must_not_run).outcome == parked);
}

TEST_CASE("a consumed key runs again when it is older than valid_for") {
  const LeaseSubject t;
  LeaseConsumer consumer = t.consumer();
  const auto storing = [](const std::string& result) {
    return [result](Lease& lease) { lease.delivery().store(result); };
  };
  Message message{.business_key = "order123", .content = "100", .valid_for = 1h};
  CHECK(consumer.consume(message, storing("first")).outcome == consumed);
  CHECK(consumer.consume(message, must_not_run).outcome == duplicate);
  std::this_thread::sleep_for(20ms);
  message.content = "200";
  message.valid_for = 1ms;
  CHECK(consumer.consume(message, storing("second")).outcome == consumed);
  message.valid_for = 0ms;
  CHECK(consumer.consume(message, must_not_run).stored == "second");
}

TEST_CASE("invalid options and invalid keys are refused") {
  const LeaseSubject t;
  for (const LeaseTerms& wrong : {LeaseTerms{.length = 0ms}, LeaseTerms{.length = std::chrono::days(25)},
                                  LeaseTerms{.length = 1s, .heartbeat = 501ms}, LeaseTerms{.heartbeat = -1ms}}) {
    CHECK(thrown_by([&] { (void)t.consumer(wrong); }) == "invalid_argument");
  }
  for (const ConsumerOptions& wrong : {ConsumerOptions{.claim_wait = -1ms}, ConsumerOptions{.max_attempts = -1},
                                       ConsumerOptions{.recent_keys = {.capacity = 1}}}) {
    CHECK(thrown_by([&] { (void)t.consumer({}, wrong); }) == "invalid_argument");
  }
  CHECK(thrown_by([&] { (void)t.keeper->consumer("", {}, {}); }) == "invalid_key");
  LeaseConsumer consumer = t.consumer();
  CHECK(thrown_by([&] { (void)consumer.consume({.business_key = ""}, nothing); }) == "invalid_key");
}

TEST_CASE("similar keys are kept apart, and results of any bytes are returned unchanged") {
  const LeaseSubject t;
  LeaseConsumer consumer = t.consumer();
  const std::string bytes("\0\r\n$-1\xff{:}", 11);
  const std::vector<std::string> keys{"a", "A", "a ", "a:b", "{a}", "*", "\r\n", "k\xc3\xa9y", std::string(255, 'k')};
  for (const std::string& key : keys) {
    CHECK(consumer.consume({.business_key = key}, [&](Lease& lease) { lease.delivery().store(bytes + key); }).outcome ==
          consumed);
  }
  for (const std::string& key : keys)
    CHECK(consumer.consume({.business_key = key}, must_not_run).stored == bytes + key);
}

TEST_CASE("a handler that throws releases its lease, and the redelivery runs immediately") {
  const LeaseSubject t;
  LeaseConsumer consumer = t.consumer();
  std::int64_t fence = 0;
  CHECK_THROWS_AS((void)consumer.consume(order,
                                         [&](Lease& lease) {
                                           fence = lease.fence();
                                           throw std::invalid_argument("no");
                                         }),
                  std::invalid_argument);
  CHECK(consumer.consume(order, [&](Lease& lease) { CHECK(lease.fence() > fence); }).outcome == consumed);
}

TEST_CASE("many workers deliver each key: one of them completes it, and one handler runs at a time") {
  const LeaseSubject t;
  std::array<std::atomic<int>, 10> inside{};
  std::atomic<int> runs = 0;
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      LeaseConsumer consumer = t.consumer();
      for (int n = 0; n < 10; ++n) {
        const Message message{.business_key = "k" + std::to_string(n)};
        for (;;) {
          const Result result = consumer.consume(message, [&](Lease&) {
            CHECK(++inside.at(static_cast<std::size_t>(n)) == 1);
            ++runs;
            std::this_thread::sleep_for(1ms);
            --inside.at(static_cast<std::size_t>(n));
          });
          if (action_for(result) == Action::acknowledge) break;
          CHECK(result.outcome == in_progress);
          std::this_thread::sleep_for(1ms);
        }
      }
    });
  }
  for (auto& each : workers) each.join();
  CHECK(runs == 10);
  CHECK(t.completed() == 10);
}

TEST_CASE("a transient error of a handler and a lost lease are not counted as failures") {
  const LeaseSubject t;
  LeaseConsumer consumer = t.consumer({}, {.max_attempts = 1});
  CHECK_THROWS_AS((void)consumer.consume(order, [](Lease&) { throw Error(ErrorCode::acquire_timeout, "busy"); }),
                  Error);
  CHECK_THROWS_AS((void)consumer.consume(order, [](Lease&) { throw Error(ErrorCode::lease_lost, "slow"); }), Error);
  CHECK(consumer.consume(order, nothing).outcome == consumed);
}

TEST_CASE("after a stop, the running handler finishes, and no other handler begins") {
  const LeaseSubject t;
  std::stop_source stop;
  LeaseConsumer consumer = t.consumer({}, {.stop = stop.get_token()});
  CHECK(consumer
            .consume(order,
                     [&](Lease& lease) {
                       CHECK(!lease.stop_token().stop_requested());
                       stop.request_stop();
                       CHECK(lease.stop_token().stop_requested());
                     })
            .outcome == consumed);
  CHECK(thrown_by([&] { (void)consumer.consume({.business_key = "2"}, must_not_run); }) == "stopped");
}

TEST_CASE("a failure of a handler after the stop is not counted") {
  const LeaseSubject t;
  std::stop_source stop;
  LeaseConsumer consumer = t.consumer({}, {.stop = stop.get_token(), .max_attempts = 1});
  const auto failing = [&](Lease&) {
    stop.request_stop();
    throw std::invalid_argument("no");
  };
  CHECK_THROWS_AS((void)consumer.consume(order, failing), std::invalid_argument);
  CHECK(t.consumer().consume(order, nothing).outcome == consumed);
}

}  // namespace
}  // namespace txinbox::test
