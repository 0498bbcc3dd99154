// The loop between a broker and a consumer: a message whose errors look as if the database were away.

#include <atomic>
#include <chrono>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/memory_broker.hpp"
#include "support/run_kit.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// One lane begins with a message whose handler has no memory, an error as of an outage. The other lane gets good
/// messages until the first lane is done.
class OutageOfMessage {
 public:
  OutageOfMessage() {
    broker_.publish(0, {.body = "bad"});
    broker_.publish(0, {.body = "behind"});
    publish_next();
  }

  void handle(const Message& message) {
    if (message.business_key == "bad") {
      ++attempts;
      throw std::bad_alloc();
    }
    good(message);
  }

  void good(const Message& message) {
    if (message.business_key != "behind" && broker_.letters().empty() && next_ < 20'000) publish_next();
  }

  template <class Consumer, class Handler>
  void check_parked(Consumer& consumer, const Handler& handler, const std::string& last_error = "std::bad_alloc") {
    MemorySource source(broker_);
    RunOptions options = until_idle();
    options.workers = 2;
    run(source, consumer, body_is_key, handler, options);
    const auto letters = broker_.letters();
    REQUIRE(letters.size() == 1);
    CHECK(letters[0].business_key == "bad");
    CHECK(letters[0].reason == "parked");
    CHECK(letters[0].failures == 3);
    CHECK(broker_.acknowledged(0) == 2);
    CHECK(attempts >= 4);  // nothing is proven about the first one
    const auto failed = list_failed(*db.session());
    REQUIRE(failed.size() == 1);
    CHECK(failed[0].business_key == "bad");
    CHECK(failed[0].attempts == 3);
    CHECK(failed[0].last_error == last_error);
    CHECK(db.claim_of("bad") == "parked");
    CHECK(db.claim_of("behind") == "consumed");
    CHECK(failed_events <= attempts);  // an event is not sent again when its attempt is counted
    CHECK(parked_events == 1);
  }

  auto observer() {
    return [this](const Event& event) {
      if (event.type == EventType::failed) ++failed_events;
      if (event.type == EventType::parked) ++parked_events;
    };
  }

  EffectDatabase db;
  std::atomic<int> attempts = 0;
  std::atomic<int> failed_events = 0;
  std::atomic<int> parked_events = 0;

 private:
  void publish_next() { broker_.publish(1, {.body = numbered("good", next_++)}); }

  MemoryBroker broker_{2};
  std::atomic<int> next_ = 0;
};

TEST_CASE("a message whose errors look like outages is parked after max_attempts while others are consumed") {
  OutageOfMessage world;
  Pool pool = world.db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {on_event(world.observer())}, .max_attempts = 3});
  SUBCASE("with a handler for one message") {
    world.check_parked(consumer, [&](soci::session& sql, Delivery& delivery) {
      add_effect(sql, delivery);
      world.handle(delivery.message());
    });
  }
  SUBCASE("with a handler for a batch") {
    world.check_parked(consumer, [&](soci::session& sql, std::span<Delivery> deliveries) {
      for (Delivery& each : deliveries) {
        add_effect(sql, each);
        world.handle(each.message());
      }
    });
  }
  CHECK(world.db.effects_of("bad") == 0);
  CHECK(world.db.effects_of("behind") == 1);
}

/// The server's error for a full disk, inside an exception of the service's own.
void fail_as_a_service_does(soci::session& sql) {
  try {
    if (on_postgresql()) sql << "do $$ begin raise exception 'full' using errcode = '53100'; end $$";
    if (on_mysql()) sql << "signal sqlstate 'HY000' set mysql_errno = 1021";
  } catch (const soci::soci_error&) {
    throw std::logic_error("the orders cannot be stored");
  }
}

// On SQLite, the handler's connection could not be used again after such an error.
TEST_CASE("a message whose errors look like outages is parked, whatever exception its handler makes of them" *
          doctest::skip(!can_raise_errors())) {
  OutageOfMessage world;
  Pool pool = world.db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {on_event(world.observer())}, .max_attempts = 3});
  const auto handler = [&](soci::session& sql, Delivery& delivery) {
    if (delivery.message().business_key != "bad") return world.good(delivery.message());
    ++world.attempts;
    fail_as_a_service_does(sql);
  };
  world.check_parked(consumer, handler, on_postgresql() ? "postgresql 53100" : "mysql 1021");
}

/// Ends the connection, as an administrator does. On MySQL, another session runs the KILL: on a Galera node, a KILL
/// commits the transaction of its own session.
void end_connection(const TestDatabase& db, soci::session& sql) {
  if (on_postgresql()) {
    sql << "select pg_terminate_backend(pg_backend_pid())";
    return;
  }
  long long id = 0;
  sql << "select connection_id()", soci::into(id);
  db.run("kill " + std::to_string(id));
  sql << "select 1";
}

TEST_CASE("a message whose handler meets a missing table, or ends its connection, is parked while others are consumed" *
          doctest::skip(!has_server())) {
  OutageOfMessage world;
  Pool pool = world.db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {on_event(world.observer())}, .max_attempts = 3});
  bool ends_connection = false;
  bool is_batch = false;
  SUBCASE("a missing table") {}
  SUBCASE("its connection") { ends_connection = true; }
  SUBCASE("its connection, with a handler for a batch") { ends_connection = is_batch = true; }
  const std::string last_error = ends_connection   ? "connection_lost"
                                 : on_postgresql() ? "postgresql 42P01"
                                                   : "mysql 1146";
  const auto handle = [&](soci::session& sql, Delivery& delivery) {
    if (delivery.message().business_key != "bad") return world.good(delivery.message());
    ++world.attempts;
    if (ends_connection) return end_connection(world.db, sql);
    sql << "insert into no_such_table values (1)";
  };
  if (!is_batch) return world.check_parked(consumer, handle, last_error);
  world.check_parked(
      consumer,
      [&](soci::session& sql, std::span<Delivery> deliveries) {
        for (Delivery& each : deliveries) handle(sql, each);
      },
      last_error);
}

TEST_CASE("a message whose errors look like outages is parked under a lease, too") {
  OutageOfMessage world;
  Pool pool = world.db.pool();
  LeaseConsumer consumer(pool, "order-service", {}, {.listeners = {on_event(world.observer())}, .max_attempts = 3});
  world.check_parked(consumer, [&](Lease& lease) { world.handle(lease.message()); });
  CHECK(world.failed_events == world.attempts);  // the last one is counted without another attempt
}

}  // namespace
}  // namespace txinbox::test
