// The breaker of `run`, with the consumers that count the failures.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/memory_broker.hpp"
#include "support/run_kit.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

constexpr int keys = 200;
constexpr int attempts = 3;

/// A deployment whose handler throws. It is repaired after the breaker has tripped and some probes have failed.
struct BadDeployment {
  std::atomic<bool> tripped = false;
  std::atomic<int> trips = 0, resumes = 0, calls = 0;

  /// The act of the handler at first.
  void fail_until_repaired() {
    constexpr int failing_probes = 3;
    if (!tripped || ++calls <= failing_probes) throw std::runtime_error("a table has another name");
  }

  static RunOptions options() {
    RunOptions options = until_idle();
    options.batch = 5;
    options.workers = 2;
    options.backoff = options.max_backoff = 1ms;
    options.breaker = {.failures = 20, .pause = 5ms, .max_pause = 20ms};
    return options;
  }

  ConsumerOptions consumer_options() {
    return {.listeners = {on_event([this](const RunEvent& event) {
              if (event.type == RunEventType::tripped) {
                ++trips;
                tripped = true;
                CHECK(event.error_class == "std::runtime_error");
              }
              if (event.type == RunEventType::resumed) ++resumes;
            })},
            .max_attempts = attempts};
  }
};

/// Counts the scopes of handlers.
struct HandlerScopes : Listener {
  void on_begin(const Scope& scope) override {
    if (scope.kind == ScopeKind::handler) ++begun;
  }
  std::atomic<int> begun = 0;
};

void publish(MemoryBroker& broker, int lanes) {
  for (int i = 0; i < keys; ++i) broker.publish(lanes == 0 ? 0 : i % lanes, {.body = numbered("order", i)});
}

void check_all_consumed(const EffectDatabase& db, const MemoryBroker& broker, const RunSummary& summary) {
  CHECK(summary.consumed == keys);
  CHECK(summary.dead_letters == 0);
  CHECK(db.effects() == keys);
  CHECK(broker.letters().empty());
  CHECK(db.number("select count(*) from txinbox_failed_message where attempts > 0") == 0);
}

TEST_CASE("after a bad deployment, all messages are consumed, and nobody had to do anything") {
  EffectDatabase db;
  Pool pool = db.pool();
  MemoryBroker broker(0);
  publish(broker, 0);
  MemorySource source(broker);
  BadDeployment deployment;
  TxConsumer consumer(pool, "order-service", deployment.consumer_options());
  const RunSummary summary = run(
      source, consumer, body_is_key,
      [&](soci::session& sql, Delivery& delivery) {
        deployment.fail_until_repaired();
        add_effect(sql, delivery);
      },
      deployment.options());
  check_all_consumed(db, broker, summary);
  CHECK(deployment.trips == 1);
  CHECK(deployment.resumes == 1);
}

TEST_CASE("after a bad deployment under leases, all messages are consumed, too") {
  EffectDatabase db;
  Pool pool = db.pool();
  MemoryBroker broker(0);
  publish(broker, 0);
  MemorySource source(broker);
  BadDeployment deployment;
  LeaseConsumer consumer(pool, "order-service", {}, deployment.consumer_options());
  const RunSummary summary = run(
      source, consumer, body_is_key,
      [&](Lease& lease) {
        deployment.fail_until_repaired();
        const auto sql = db.session();
        add_effect(*sql, lease.delivery());
      },
      deployment.options());
  check_all_consumed(db, broker, summary);
  CHECK(deployment.trips == 1);
}

TEST_CASE("messages that fail among others are counted and parked, although run began with them") {
  for (const bool under_lease : {false, true}) {
    CAPTURE(under_lease);
    EffectDatabase db;
    Pool pool = db.pool();
    MemoryBroker broker(2);
    publish(broker, 2);
    MemorySource source(broker);
    BadDeployment deployment;
    std::atomic<int> calls = 0;
    const auto fails = [&](const Delivery& delivery) {
      ++calls;
      const std::string& key = delivery.message().business_key;
      if (key == "order-0" || key == "order-1" || key == "order-77") throw std::runtime_error("no stock");
    };
    const auto scopes = std::make_shared<HandlerScopes>();
    ConsumerOptions options = deployment.consumer_options();
    options.listeners.push_back(scopes);
    TxConsumer consumer(pool, "order-service", options);
    LeaseConsumer lease_consumer(pool, "order-service", {}, options);
    const RunSummary summary = under_lease ? run(
                                                 source, lease_consumer, body_is_key,
                                                 [&](Lease& lease) {
                                                   fails(lease.delivery());
                                                   const auto sql = db.session();
                                                   add_effect(*sql, lease.delivery());
                                                 },
                                                 deployment.options())
                                           : run(
                                                 source, consumer, body_is_key,
                                                 [&](soci::session& sql, Delivery& delivery) {
                                                   fails(delivery);
                                                   add_effect(sql, delivery);
                                                 },
                                                 deployment.options());
    CHECK(summary.consumed == keys - 3);
    CHECK(broker.letters().size() == 3);
    for (const auto& letter : broker.letters()) CHECK(letter.reason == "parked");
    const auto failed = list_failed(*db.session());
    REQUIRE(failed.size() == 3);
    for (const FailedMessage& each : failed) {
      CHECK(each.state == FailedState::parked);
      CHECK(each.attempts == attempts);
      CHECK(each.last_error == "std::runtime_error");
    }
    CHECK(deployment.trips == 0);
    CHECK(scopes->begun == calls);  // the failures that are counted later have no scopes
  }
}

TEST_CASE("a message whose errors do not count is not passed") {
  EffectDatabase db;
  Pool pool = db.pool();
  RetryPolicy retry;
  retry.max_runs = 1;
  TxConsumer consumer(
      pool, "order-service",
      {.retry = retry, .max_attempts = 2, .is_transient = [](const std::exception_ptr&) { return true; }});
  MemoryBroker broker(1);
  for (const char* key : {"first", "second"}) broker.publish(key);
  MemorySource source(broker);
  BadDeployment deployment;
  RunLog log;
  const RunSummary summary =
      run(source, consumer, body_is_key,
          failing_at_first(log, 5, [](const std::string& key) { return key == "first"; }), deployment.options());
  CHECK(summary.consumed == 2);
  CHECK(log.count("first") == 6);
  CHECK(log.keys().back() == "second");
}

/// Makes the claim of "first" fail until the flag is taken away.
void refuse_claim_of_first(const TestDatabase& db) {
  db.run("create table refusing (no int)");
  db.run("insert into refusing values (1)");
  db.run(
      "create trigger refuse before insert on txinbox_consumed_message when new.business_key = 'first' and "
      "(select count(*) from refusing) > 0 begin select raise(abort, 'no'); end");
}

TEST_CASE("an error before the handler runs is no failure of the message") {
  for (const bool under_lease : {false, true}) {
    CAPTURE(under_lease);
    EffectDatabase db;
    refuse_claim_of_first(db);
    Pool pool = db.pool();
    MemoryBroker broker(2);
    broker.publish(0, {.body = "first"});
    broker.publish(1, {.body = "second"});
    MemorySource source(broker);
    RunOptions options = BadDeployment::options();
    options.workers = options.batch = 1;
    RunLog log;
    const auto work = [&](const std::string& key) {
      log.add(key);
      if (key == "second") db.run("delete from refusing");
    };
    RunSummary summary;
    if (under_lease) {
      LeaseConsumer consumer(pool, "order-service", {}, {.max_attempts = 1});
      summary = run(
          source, consumer, body_is_key, [&](Lease& lease) { work(lease.delivery().message().business_key); }, options);
    } else {
      TxConsumer consumer(pool, "order-service", {.max_attempts = 1});
      const auto handler = [&](soci::session& sql, Delivery& delivery) {
        log.add(delivery.message().business_key);
        if (delivery.message().business_key == "second") sql << "delete from refusing";
      };
      summary = run(source, consumer, body_is_key, handler, options);
    }
    CHECK(summary.consumed == 2);
    CHECK(summary.dead_letters == 0);
    CHECK(log.count("first") == 1);
    CHECK(list_failed(*db.session()).empty());
  }
}

}  // namespace
}  // namespace txinbox::test
