// Outbox::add: messages commit with the transaction that adds them.

#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/native.hpp>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/schema_tools.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order1"};

OutgoingMessage booked(std::string payload = "{}") {
  return {.topic = "stock", .key = "order1", .type = "OrderBooked", .payload = std::move(payload)};
}

long long rows(const TestDatabase& db) { return db.number("select count(*) from txinbox_outbox_message"); }

TEST_CASE("a message is in the outbox only if the handler's transaction commits") {
  const TestDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK_THROWS((void)consumer.consume(order, [](soci::session& sql, Delivery&) {
    Outbox::add(sql, booked());
    throw std::runtime_error("no");
  }));
  CHECK(rows(db) == 0);
  const Result refused = consumer.consume({.business_key = "order2"}, [](soci::session& sql, Delivery& delivery) {
    Outbox::add(sql, booked());
    delivery.refuse("no");
  });
  CHECK(refused.refused);
  CHECK(rows(db) == 0);
  const auto add = [](soci::session& sql, Delivery&) { Outbox::add(sql, booked()); };
  CHECK(consumer.consume(order, add).outcome == Outcome::consumed);
  CHECK(consumer.consume(order, add).outcome == Outcome::already_consumed);
  CHECK(rows(db) == 1);
}

TEST_CASE("a handler that rolls the transaction back leaves no message in the outbox") {
  const TestDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK_THROWS_AS((void)consumer.consume(order,
                                         [](soci::session& sql, Delivery&) {
                                           Outbox::add(sql, booked());
                                           sql << "rollback";
                                         }),
                  Error);
  CHECK(rows(db) == 0);
}

// If the guard cannot refuse the handler's COMMIT, the message is committed with the handler's other rows.
TEST_CASE("a handler that commits the transaction itself leaves its message only if its other rows stay, too") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 1}});
  CHECK(thrown_by([&] {
          (void)consumer.consume(order, [](soci::session& sql, Delivery& delivery) {
            add_effect(sql, delivery);
            Outbox::add(sql, booked());
            sql << "commit";
            Outbox::add(sql, booked());
          });
        }) == "transaction_lost");
  CHECK(db.effects() == (pool_refuses_foreign_commit() ? 0 : 1));
  CHECK(rows(db) == db.effects());
}

TEST_CASE("the ids and the rows of many messages are in the order of the messages") {
  const TestDatabase db;
  const auto sql = db.session();
  std::vector<OutgoingMessage> messages;
  for (int i = 0; i < 1'203; ++i) messages.push_back({.topic = "t", .key = "k", .payload = std::to_string(i)});
  const auto ids = Outbox::add(*sql, messages);
  CHECK(std::set<std::string>(ids.begin(), ids.end()).size() == 1'203);
  CHECK(rows(db) == 1'203);
  const auto id_at = [&](const std::string& direction) {
    return db.text(here<std::string>("select id", "select convert(id using utf8mb4)", "select cast(id as text)") +
                   " from txinbox_outbox_message order by seq " + direction + " limit 1");
  };
  CHECK(id_at("asc") == ids.front());
  CHECK(id_at("desc") == ids.back());
  CHECK(db.number("select count(distinct part) from txinbox_outbox_message") == 1);
  CHECK(Outbox::add(*sql, std::vector<OutgoingMessage>{}).empty());
}

TEST_CASE("a handler that runs again adds the same ids, and another key or consumer adds different ids") {
  const TestDatabase db;
  Pool pool = db.pool(1);
  std::vector<std::string> ids;
  const auto add_two = [&](soci::session& sql, Delivery&) {
    ids = {Outbox::add(sql, booked("1")), Outbox::add(sql, booked("2"))};
  };
  TxConsumer consumer(pool, "svc");
  REQUIRE(consumer.consume(order, add_two).outcome == Outcome::consumed);
  const auto first = ids;
  CHECK(first[0] != first[1]);
  CHECK(first[0][14] == '8');

  // The rows are still in the outbox. The second run does not change them.
  REQUIRE(forget(*db.session(), "svc", "order1"));
  REQUIRE(consumer.consume(order, add_two).outcome == Outcome::consumed);
  CHECK(ids == first);
  CHECK(rows(db) == 2);

  db.run("delete from txinbox_outbox_message");
  REQUIRE(forget(*db.session(), "svc", "order1"));
  int runs = 0;
  REQUIRE(consumer
              .consume(order,
                       [&](soci::session& sql, Delivery& delivery) {
                         add_two(sql, delivery);
                         if (++runs == 1) throw Error(ErrorCode::acquire_timeout, "transient");
                       })
              .outcome == Outcome::consumed);
  CHECK(runs == 2);
  CHECK(ids == first);
  CHECK(rows(db) == 2);

  REQUIRE(TxConsumer(pool, "other").consume(order, add_two).outcome == Outcome::consumed);
  CHECK(ids[0] != first[0]);
  REQUIRE(consumer.consume({.business_key = "order2"}, add_two).outcome == Outcome::consumed);
  CHECK(ids[0] != first[0]);
  CHECK(rows(db) == 6);
}

TEST_CASE("handlers in two databases never add messages with the same id, and those in one database do again") {
  const TestDatabase one, other;
  const auto id_in = [](const TestDatabase& db) {
    Pool pool = db.pool(1);
    TxConsumer consumer(pool, "svc");
    std::string id;
    const auto add = [&](soci::session& sql, Delivery&) { id = Outbox::add(sql, booked("derived")); };
    CHECK(consumer.consume(order, add).outcome == Outcome::consumed);
    REQUIRE(forget(*db.session(), "svc", "order1"));
    return id;
  };
  const std::string first = id_in(one);
  CHECK(id_in(other) != first);
  CHECK(id_in(one) == first);
}

TEST_CASE("without the row of the database's id, a handler's message is not added, and the row is named") {
  const TestDatabase db;
  db.run("delete from txinbox_outbox_database");
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto add = [](soci::session& sql, Delivery&) { Outbox::add(sql, booked("derived")); };
  CHECK(thrown_by([&] { (void)consumer.consume({.business_key = "order1"}, add); }) == "schema_mismatch");
  CHECK(db.number("select count(*) from txinbox_consumed_message") == 0);
  CHECK(db.number("select count(*) from txinbox_failed_message") == 0);
}

TEST_CASE("a message with a derived id may be added again, and a message with the caller's own id may not") {
  const TestDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  OutgoingMessage own = booked("own");
  own.id = "00000000-0000-4000-8000-000000000001";
  const auto add = [&](const std::vector<OutgoingMessage>& messages) {
    const auto result =
        consumer.consume(order, [&](soci::session& sql, Delivery&) { Outbox::add(sql, messages); }).outcome;
    REQUIRE(forget(*db.session(), "svc", "order1"));
    return result;
  };
  // A single message is added by another statement than several.
  const std::vector<OutgoingMessage> own_last{booked("derived"), booked("derived"), own};
  const std::vector<OutgoingMessage> own_first{own, booked("derived")};
  REQUIRE(add(own_last) == Outcome::consumed);
  // The caller's own id is in the outbox already.
  CHECK_THROWS_AS((void)add(own_first), soci::soci_error);
  CHECK_THROWS_AS((void)add(own_last), soci::soci_error);
  CHECK(rows(db) == 3);
  db.run("delete from txinbox_outbox_message where id = '" + own.id + "'");
  CHECK(add(own_last) == Outcome::consumed);
  CHECK(rows(db) == 3);
}

TEST_CASE("a key that is consumed again after valid_for gets new ids each time") {
  const TestDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  std::set<std::string> ids;
  const Message message{.business_key = "order1", .valid_for = std::chrono::milliseconds(1)};
  for (int i = 0; i < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(consumer.consume(message, [&](soci::session& sql, Delivery&) { ids.insert(Outbox::add(sql, booked())); })
              .outcome == Outcome::consumed);
  }
  CHECK(ids.size() == 2);
  CHECK(rows(db) == 2);
}

TEST_CASE("the ids of a message are the same in a batch and alone") {
  const TestDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto ids_of = [&](const std::vector<Message>& messages) {
    std::vector<std::string> ids;
    (void)consumer.consume_batch(messages,
                                 [&](soci::session& sql, Delivery&) { ids.push_back(Outbox::add(sql, booked())); });
    for (const Message& message : messages) forget(*db.session(), "svc", message.business_key);
    db.run("delete from txinbox_outbox_message");
    return ids;
  };
  const auto both = ids_of({{.business_key = "a"}, {.business_key = "b"}});
  REQUIRE(both.size() == 2);
  CHECK(ids_of({{.business_key = "a"}}).front() == both[0]);
  CHECK(ids_of({{.business_key = "b"}}).front() == both[1]);
}

TEST_CASE("in a Transaction the message commits with the claim, and its id depends on the claim") {
  const TestDatabase db;
  const auto sql = db.session();
  std::string rolled_back, committed;
  {
    Transaction transaction(*sql);
    REQUIRE(transaction.claim("svc", order) == Claim::claimed);
    rolled_back = Outbox::add(*sql, booked());
  }
  CHECK(rows(db) == 0);
  {
    Transaction transaction(*sql);
    REQUIRE(transaction.claim("svc", order) == Claim::claimed);
    committed = Outbox::add(*sql, booked());
    transaction.commit();
  }
  CHECK(rows(db) == 1);
  CHECK(committed == rolled_back);
  CHECK(Outbox::add(*sql, booked()) != committed);  // after the transaction
}

TEST_CASE("Outbox::add works on a native connection, and in the caller's own transaction") {
  const TestDatabase db;
  const auto sql = db.session();
  Pool pool = db.pool(1);
  std::string native, soci;
  TxConsumer consumer(pool, "svc");
  REQUIRE(consumer.consume(order, [&](NativeHandle handle, Delivery&) { native = Outbox::add(handle, booked()); })
              .outcome == Outcome::consumed);
  db.run("delete from txinbox_outbox_message");
  REQUIRE(forget(*sql, "svc", "order1"));
  REQUIRE(consumer.consume(order, [&](soci::session& s, Delivery&) { soci = Outbox::add(s, booked()); }).outcome ==
          Outcome::consumed);
  CHECK(native == soci);

  *sql << "begin";
  Outbox::add(*sql, booked());
  *sql << "rollback";
  CHECK(rows(db) == 1);
  *sql << "begin";
  Outbox::add(native_handle(*sql), booked());
  *sql << "commit";
  CHECK(rows(db) == 2);
}

TEST_CASE("an id of the caller is kept, and refused a second time") {
  const TestDatabase db;
  const auto sql = db.session();
  OutgoingMessage message = booked();
  message.id = "0A1B2C3D-0000-4000-8000-00000000000f";
  CHECK(Outbox::add(*sql, message) == "0a1b2c3d-0000-4000-8000-00000000000f");
  CHECK_THROWS_AS(Outbox::add(*sql, message), soci::soci_error);
  CHECK(rows(db) == 1);
}

TEST_CASE("a message beyond the limits is refused before a statement is sent") {
  const TestDatabase db;
  const auto sql = db.session();
  const auto refused = [&](const OutgoingMessage& message) {
    return thrown_by([&] { Outbox::add(*sql, std::vector{booked(), message}); }) == "invalid_message";
  };
  CHECK(refused({.topic = ""}));
  CHECK(refused({.topic = std::string(256, 't')}));
  CHECK(refused({.topic = "t", .key = std::string(256, 'k')}));
  CHECK(refused({.topic = "t", .key = std::string("k\0", 2)}));
  CHECK(refused({.topic = "t", .type = "\xff"}));
  CHECK(refused({.topic = "t", .payload = std::string(4UL * 1024 * 1024 + 1, 'p')}));
  CHECK(refused({.topic = "t", .headers = {{"h", std::string(65'535, 'h')}}}));
  CHECK(refused({.topic = "t", .headers = {{"\xff", ""}}}));
  CHECK(refused({.topic = "t", .id = "42"}));
  CHECK(refused({.topic = "t", .id = "0a1b2c3d-0000-4000-8000-00000000000g"}));
  CHECK(rows(db) == 0);
  CHECK_NOTHROW(Outbox::add(*sql, {.topic = std::string(255, 't'),
                                   .key = std::string(255, 'k'),
                                   .type = std::string(255, 'y'),
                                   .payload = std::string(4UL * 1024 * 1024, 'p')}));
  CHECK(rows(db) == 1);
}

}  // namespace
}  // namespace txinbox::test
