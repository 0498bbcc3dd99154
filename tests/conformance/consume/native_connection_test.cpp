// Consumers, handlers and transactions on a connection of the database's own client library, without SOCI.

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/native.hpp>
#include <txinbox/txinbox.hpp>

#include "backend/sqlite3/native.hpp"
#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/native_client.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order1"};

/// A database and a service's own connection to it.
struct Scene {
  EffectDatabase db;
  std::unique_ptr<NativeClient> client = NativeClient::open(db);

  Scene() {
    if (on_mysql()) {
      db.run("create procedure fail_transiently() signal sqlstate '40001' set mysql_errno = 1213");
    }
  }

  /// Writes one row on the service's connection.
  void add(const Delivery& delivery) {
    client->run("insert into effect values ('" + delivery.message().business_key + "')");
  }
};

/// Consumes a message. Its handler calls `each` in the first run, and adds an effect at the end of a run. Returns how
/// often the handler ran.
template <class Each>
int runs_of(Scene& scene, TxConsumer& consumer, const Each& each) {
  int runs = 0;
  const Result result = consumer.consume(order, [&](NativeHandle, Delivery& delivery) {
    if (++runs == 1) each();
    scene.add(delivery);
  });
  CHECK(result.outcome == Outcome::consumed);
  CHECK(scene.db.effects() == 1);
  return runs;
}

}  // namespace

TEST_CASE("a consumer on a native connection runs a message once, with its SQL in one transaction") {
  Scene scene;
  TxConsumer consumer(scene.client->handle(), "svc");
  int runs = 0;
  const Handler handler = [&](NativeHandle handle, Delivery& delivery) {
    CHECK(handle.database() == database());
    ++runs;
    scene.add(delivery);
  };
  CHECK(consumer.consume(order, handler).outcome == Outcome::consumed);
  CHECK(consumer.consume(order, handler).outcome == Outcome::already_consumed);
  CHECK(runs == 1);
  CHECK(scene.db.effects() == 1);
  CHECK(scene.db.claim_of("order1") == "consumed");

  CHECK_THROWS_AS((void)consumer.consume({.business_key = "order2"},
                                         [&](NativeHandle, Delivery& delivery) {
                                           scene.add(delivery);
                                           throw std::runtime_error("no stock");
                                         }),
                  std::runtime_error);
  CHECK(scene.db.effects() == 1);
  CHECK(scene.db.claim_of("order2") == "none");
}

TEST_CASE("a handler can have a parameter for the connection of its client library") {
  Scene scene;
  TxConsumer consumer(scene.client->handle(), "svc");
  int runs = 0;
  if (on_postgresql()) {
    (void)consumer.consume(order,
                           [&](pg_conn* pg, Delivery&) { runs += pg == scene.client->handle().postgresql() ? 1 : 0; });
  } else if (on_mysql()) {
    (void)consumer.consume(order, [&](st_mysql* db) { runs += db == scene.client->handle().mysql() ? 1 : 0; });
  } else {
    (void)consumer.consume(order,
                           [&](::sqlite3* db, Delivery&) { runs += db == scene.client->handle().sqlite3() ? 1 : 0; });
  }
  CHECK(runs == 1);
}

TEST_CASE("a batch, idempotent, a lease and a transaction work on a native connection") {
  Scene scene;
  const NativeHandle handle = scene.client->handle();
  TxConsumer consumer(handle, "svc");
  const std::vector<Message> batch = {{.business_key = "b1"}, {.business_key = "b2"}, {.business_key = "b1"}};
  const auto results = consumer.consume_batch(batch, [&](NativeHandle, Delivery& delivery) { scene.add(delivery); });
  CHECK(results[0].outcome == Outcome::consumed);
  CHECK(results[1].outcome == Outcome::consumed);
  CHECK(results[2].outcome == Outcome::already_consumed);
  CHECK(scene.db.effects() == 2);

  struct Order {
    std::string no;
  };
  const auto on_order = idempotent(consumer, &Order::no, [&](NativeHandle, Delivery& delivery, const Order& its) {
    CHECK(its.no == "i1");
    scene.add(delivery);
  });
  CHECK(on_order(Order{"i1"}).outcome == Outcome::consumed);
  CHECK(on_order(Order{"i1"}).outcome == Outcome::already_consumed);
  CHECK(scene.db.effects() == 3);

  LeaseConsumer leases(handle, "leased");
  CHECK(leases
            .consume(order,
                     [&](Lease& lease) {
                       scene.add(lease.delivery());
                       lease.renew();
                     })
            .outcome == Outcome::consumed);
  CHECK(leases.consume(order, [](Lease&) { FAIL("the handler of a duplicate ran"); }).outcome ==
        Outcome::already_consumed);
  CHECK(scene.db.effects() == 4);
  CHECK(thrown_by([&] { LeaseConsumer(handle, "leased", {.heartbeat = std::chrono::seconds(1)}); }) ==
        "invalid_argument");

  {
    Transaction transaction(handle);
    CHECK(transaction.claim("by hand", order) == Claim::claimed);
    scene.client->run("insert into effect values ('t')");
    transaction.commit();
  }
  CHECK(scene.db.effects_of("t") == 1);
}

TEST_CASE("a caller's SQLite connection can be closed after its consumer, also after a lock time-out" *
          doctest::skip(!on_sqlite3())) {
  EffectDatabase db;
  const auto other = db.session();
  const std::string file = db.url().substr(std::string("sqlite://").size());
  ::sqlite3* connection = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &connection) == SQLITE_OK);
  {
    TxConsumer consumer(NativeHandle(connection), "svc", {.retry = {.max_runs = 1}});
    const auto consume = [&](const char* key) {
      return consumer.consume({.business_key = key}, [](NativeHandle, Delivery&) {}).outcome;
    };
    CHECK(consume("order1") == Outcome::consumed);
    CHECK(consume("order1") == Outcome::already_consumed);
    *other << "begin immediate";
    CHECK(thrown_by([&] { (void)consume("order2"); }) == "transient");
    other->rollback();
    CHECK(sqlite3_close(connection) == SQLITE_BUSY);  // the consumer has statements on it
    CHECK(consume("order2") == Outcome::consumed);
  }
  CHECK(sqlite3_close(connection) == SQLITE_OK);
}

TEST_CASE("the functions for operators work on a native connection") {
  const TestDatabase db(TestDatabase::Tables::none);
  const auto client = NativeClient::open(db);
  const NativeHandle handle = client->handle();
  CHECK(thrown_by([&] { verify(handle); }) == "schema_missing");
  CHECK(!migrate(handle).empty());
  CHECK(migrate(handle).empty());
  for (const MigrationState& each : migration_states(handle)) CHECK(each.applied);
  verify(handle);
  CHECK(inbox_status(handle).consumers.empty());
  CHECK(!has_consumer(handle, "svc"));
  (void)TxConsumer(handle, "svc").consume(order, [](NativeHandle) {});
  CHECK(find_message(handle, "svc", "order1")->state == "consumed");
  CHECK(list_failed(handle).empty());
  CHECK(list_leases(handle).empty());
  CHECK(purge(handle, std::chrono::hours(1)) == 0);
  CHECK(forget(handle, "svc", "order1"));
  CHECK(!forget(handle, "svc", "order1"));
}

TEST_CASE("a message runs again after a transient error, even if the handler throws another exception") {
  Scene scene;
  TxConsumer consumer(scene.client->handle(), "svc");
  CHECK(runs_of(scene, consumer, [&] { scene.client->fail_transiently(); }) == 2);
}

TEST_CASE("a message runs again after a transient error on a pool's native connection" *
          doctest::skip(!can_raise_errors())) {
  Scene scene;
  Pool pool = scene.db.pool();
  TxConsumer consumer(pool, "svc");
  int runs = 0;
  const Result result = consumer.consume(order, [&](soci::session& sql, Delivery&) {
    CHECK(native_handle(sql).database() == database());
    if (++runs > 1) return;
    try {
      sql << (on_mysql() ? "call fail_transiently()"
                         : "do $$ begin raise exception 'so' using errcode = '40P01'; end $$");
    } catch (const soci::soci_error&) {
      throw std::logic_error("the service's own");
    }
  });
  CHECK(result.outcome == Outcome::consumed);
  CHECK(runs == 2);
}

TEST_CASE("an error that a handler has recovered from does not make its own exception transient") {
  Scene scene;
  TxConsumer consumer(scene.client->handle(), "svc", {.max_attempts = 1});
  int runs = 0;
  const Result result = consumer.consume(order, [&](NativeHandle, Delivery&) {
    ++runs;
    scene.client->run("savepoint mine");
    try {
      scene.client->fail_transiently();
    } catch (const std::runtime_error&) {
      scene.client->run("rollback to savepoint mine");
    }
    scene.client->run("insert into effect values ('mine')");
    throw std::logic_error("no stock");
  });
  CHECK(runs == 1);
  CHECK(result.outcome == Outcome::parked);
  CHECK_THROWS_AS(std::rethrow_exception(result.error), std::logic_error);
}

TEST_CASE("the listener and the caller get the exception that the handler threw") {
  Scene scene;
  std::vector<std::string> classes;
  const auto observer = [&](const Event& event) {
    if (event.type != EventType::failed && event.type != EventType::retry) return;
    classes.emplace_back(event.error_class);
    CHECK_THROWS_AS(std::rethrow_exception(event.error), std::runtime_error);
  };
  TxConsumer consumer(scene.client->handle(), "svc", {.retry = {.max_runs = 2}, .listeners = {on_event(observer)}});
  CHECK_THROWS_AS((void)consumer.consume(order, [&](NativeHandle) { scene.client->fail_transiently(); }),
                  std::runtime_error);
  CHECK(classes.size() == 2);
  for (const std::string& each : classes) CHECK(each == (on_sqlite3() ? "lock_timeout" : "deadlock"));
  CHECK(scene.db.number("select count(*) from txinbox_failed_message") == 0);

  const std::vector<Message> batch = {order};
  const auto results = consumer.consume_batch(
      batch, [&](NativeHandle) { scene.client->fail_transiently(); }, OnFailure::skip);
  REQUIRE(results[0].outcome == Outcome::failed);
  CHECK_THROWS_AS(std::rethrow_exception(results[0].error), std::runtime_error);
}

TEST_CASE("a handler for another kind of connection is refused, and nothing is lost") {
  Scene scene;
  TxConsumer consumer(scene.client->handle(), "svc");
  CHECK(thrown_by([&] { (void)consumer.consume(order, [](soci::session&) {}); }) == "invalid_argument");
  if (on_sqlite3()) {
    CHECK(thrown_by([&] { (void)consumer.consume(order, [](pg_conn*) {}); }) == "invalid_argument");
  } else {
    CHECK(thrown_by([&] { (void)consumer.consume(order, [](::sqlite3*) {}); }) == "invalid_argument");
  }
  CHECK(scene.db.claim_of("order1") == "none");
  CHECK(scene.db.number("select count(*) from txinbox_failed_message") == 0);
  CHECK(consumer.consume(order, [](NativeHandle) {}).outcome == Outcome::consumed);
}

TEST_CASE("a connection that cannot be used is refused with a remedy, and nothing is lost") {
  pg_conn* no_postgresql = nullptr;
  st_mysql* no_mysql = nullptr;
  ::sqlite3* no_sqlite3 = nullptr;
  CHECK(thrown_by([&] { TxConsumer(no_postgresql, "svc"); }) == "invalid_argument");
  CHECK(thrown_by([&] { TxConsumer(no_mysql, "svc"); }) == "invalid_argument");
  CHECK(thrown_by([&] { Transaction transaction(no_sqlite3); }) == "invalid_argument");
  const auto unopened = NativeClient::unopened();
  CHECK(thrown_by([&] { TxConsumer(unopened->handle(), "svc"); }) == "invalid_argument");

  Scene scene;
  TxConsumer consumer(scene.client->handle(), "svc");
  const auto consume = [&] { (void)consumer.consume(order, [&](NativeHandle, Delivery& d) { scene.add(d); }); };
  scene.client->run("begin");
  CHECK(thrown_by(consume) == "transaction_open");
  scene.client->run("rollback");
  if (scene.client->leave_busy()) {
    CHECK(thrown_by(consume) == "unsafe_connection");
    CHECK(thrown_by([&] { Transaction transaction(scene.client->handle()); }) == "unsafe_connection");
    scene.client->end_busy();
  }
  consume();
  CHECK(scene.db.effects() == 1);
}

TEST_CASE("UNICODE counts as UTF-8" * doctest::skip(!on_postgresql())) {
  // On other databases the client encoding does not matter.
  Scene scene;
  scene.client->run("set client_encoding = 'UNICODE'");
  TxConsumer consumer(scene.client->handle(), "svc");
  CHECK(consumer.consume(order, [&](NativeHandle, Delivery& d) { scene.add(d); }).outcome == Outcome::consumed);
}

TEST_CASE("a consumer leaves a native connection's settings as they were") {
  Scene scene;
  if (on_mysql()) scene.client->run("set autocommit = 0");
  if (on_postgresql()) scene.client->run("set default_transaction_isolation = 'serializable'");
  TxConsumer consumer(scene.client->handle(), "svc");
  CHECK(consumer.consume(order, [&](NativeHandle, Delivery& d) { scene.add(d); }).outcome == Outcome::consumed);
  CHECK(scene.db.effects() == 1);
  scene.client->run(on_mysql()        ? "insert into effect select 'set' from dual where @@autocommit = 0"
                    : on_postgresql() ? "insert into effect select 'set' where "
                                        "current_setting('default_transaction_isolation') = 'serializable'"
                                      : "insert into effect values ('set')");
  if (on_mysql()) scene.client->run("commit");
  CHECK(scene.db.effects_of("set") == 1);
}

TEST_CASE("after a handler's own COMMIT on a native connection, the listener hears of the torn message" *
          doctest::skip(refuses_foreign_commit())) {
  Scene scene;
  std::vector<EventType> heard;
  TxConsumer consumer(scene.client->handle(), "svc",
                      {.listeners = {on_event([&](const Event& event) { heard.push_back(event.type); })}});
  CHECK(thrown_by([&] {
          (void)consumer.consume(order, [&](NativeHandle, Delivery& delivery) {
            scene.add(delivery);
            scene.client->run("commit");
            throw RetryLater(std::chrono::seconds(1));
          });
        }) == "transaction_lost");
  CHECK(heard == std::vector{EventType::torn, EventType::failed});
  CHECK(scene.db.claim_of("order1") == "torn");
}

}  // namespace txinbox::test
