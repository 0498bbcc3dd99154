// The cache of recent keys: which keys it may answer without the database.

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using std::chrono::milliseconds;

const Message order{.business_key = "order123"};

/// The capacity and the maximum age are so large that no test reaches them.
const ConsumerOptions remembering = {.recent_keys = {.capacity = 1000, .max_age = std::chrono::hours(1)}};

/// A consumer with a cache. A test deletes its rows, and the cache does not know this. If a key is then still a
/// duplicate, it is cached. If it runs again, it is not cached.
struct Remembering {
  EffectDatabase db;
  Pool pool = db.pool(4);
  TxConsumer consumer;

  explicit Remembering(ConsumerOptions options = remembering) : consumer(pool, "svc", std::move(options)) {}

  Outcome consume(const Message& message) { return consumer.consume(message, add_effect).outcome; }
  Outcomes consume_batch(const std::vector<Message>& messages, OnFailure mode = OnFailure::stop) {
    return outcomes(consumer.consume_batch(messages, add_effect, mode));
  }
  void remove_rows() const { db.run("delete from txinbox_consumed_message"); }
};

TEST_CASE("without the option recent_keys, nothing is answered from the cache") {
  Remembering t{ConsumerOptions{}};
  CHECK(t.consume(order) == consumed);
  CHECK(t.consume(order) == duplicate);
  t.remove_rows();
  CHECK(t.consume(order) == consumed);
  t.remove_rows();
  CHECK(t.consume_batch({order}) == Outcomes{consumed});
}

TEST_CASE("a cached duplicate is answered without the database, and the listener gets its event") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  std::vector<EventType> heard;
  ConsumerOptions options = remembering;
  options.listeners = {on_event([&](const Event& e) { heard.push_back(e.type); })};
  TxConsumer consumer(pool, "svc", options);
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
  db.run("delete from txinbox_consumed_message");
  for (int i = 0; i < 3; ++i) {
    const Result result =
        consumer.consume(order, [](soci::session&, Delivery&) { FAIL("the handler of a duplicate ran"); });
    CHECK(result.outcome == duplicate);
    CHECK(action_for(result) == Action::acknowledge);
  }
  CHECK(outcomes(consumer.consume_batch(messages_of({"order123", "order123"}), add_effect)) ==
        Outcomes{duplicate, duplicate});
  CHECK(heard == std::vector<EventType>{EventType::consumed, EventType::already_consumed, EventType::already_consumed,
                                        EventType::already_consumed, EventType::already_consumed,
                                        EventType::already_consumed});
  CHECK(db.effects() == 1);
}

TEST_CASE("a forgotten key stays cached until its maximum age") {
  Remembering young;
  CHECK(young.consume(order) == consumed);
  CHECK(forget(young.pool.acquire(), "svc", order.business_key));
  CHECK(young.consume(order) == duplicate);

  Remembering old{{.recent_keys = {.capacity = 10, .max_age = milliseconds(1)}}};
  CHECK(old.consume(order) == consumed);
  CHECK(forget(old.pool.acquire(), "svc", order.business_key));
  std::this_thread::sleep_for(milliseconds(5));
  CHECK(old.consume(order) == consumed);
}

TEST_CASE("only the same content is answered from the cache") {
  Remembering t;
  const auto with = [](const char* content) { return Message{.business_key = "order123", .content = content}; };
  CHECK(t.consume(with("100")) == consumed);
  CHECK(t.consume(with("999")) == Outcome::conflict);
  CHECK(t.consume_batch({with("999")}) == Outcomes{Outcome::conflict});
  CHECK(t.consume(with("100")) == duplicate);
  t.remove_rows();
  CHECK(t.consume(with("100")) == duplicate);
  CHECK(t.consume(with("999")) == consumed);  // the conflict is not cached
  t.remove_rows();
  CHECK(t.consume(with("")) == consumed);
  t.remove_rows();
  CHECK(t.consume(with("")) == duplicate);
  CHECK(t.consume(with("100")) == consumed);
}

TEST_CASE("a duplicate without content keeps the cached content, and a duplicate with content does not add one") {
  Remembering t;
  CHECK(t.consume({.business_key = "a", .content = "100"}) == consumed);
  CHECK(t.consume({.business_key = "a"}) == duplicate);
  CHECK(t.consume({.business_key = "a", .content = "999"}) == Outcome::conflict);
  CHECK(t.consume({.business_key = "b"}) == consumed);
  CHECK(t.consume({.business_key = "b", .content = "100"}) == duplicate);
  CHECK(t.consume({.business_key = "b", .content = "999"}) == duplicate);
}

TEST_CASE("a stored result always comes from the row") {
  Remembering t;
  const Handler storing = [](soci::session& sql, Delivery& d) {
    add_effect(sql, d);
    d.store("receipt");
  };
  CHECK(t.consumer.consume(order, storing).outcome == consumed);
  CHECK(t.consumer.consume_batch(messages_of({"in a batch"}), storing)[0].outcome == consumed);
  for (const char* key : {"order123", "in a batch"}) {
    for (int i = 0; i < 2; ++i) {
      CHECK(t.consumer.consume({.business_key = key}, add_effect).stored == "receipt");
      CHECK(t.consumer.consume_batch(messages_of({key}), add_effect)[0].stored == "receipt");
    }
  }
  t.remove_rows();
  CHECK(t.consume(order) == consumed);
  CHECK(t.consume_batch(messages_of({"in a batch"})) == Outcomes{consumed});
}

TEST_CASE("duplicates that a batch finds in the table are cached too") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer earlier(pool, "svc");
  CHECK(outcomes(earlier.consume_batch(messages_of({"a", "b"}), add_effect)) == Outcomes{consumed, consumed});
  TxConsumer consumer(pool, "svc", {.recent_keys = {.capacity = 10}});
  CHECK(outcomes(consumer.consume_batch(messages_of({"a", "b"}), add_effect)) == Outcomes{duplicate, duplicate});
  db.run("delete from txinbox_consumed_message");
  CHECK(outcomes(consumer.consume_batch(messages_of({"a", "b"}), add_effect)) == Outcomes{duplicate, duplicate});
  CHECK(db.effects() == 2);
}

TEST_CASE("the cache keeps the latest keys, up to its capacity") {
  Remembering t{{.recent_keys = {.capacity = 2}}};
  for (const char* key : {"a", "b", "c"}) CHECK(t.consume({.business_key = key}) == consumed);
  t.remove_rows();
  CHECK(t.consume({.business_key = "c"}) == duplicate);
  CHECK(t.consume({.business_key = "b"}) == duplicate);
  CHECK(t.consume({.business_key = "a"}) == consumed);
}

TEST_CASE("a duplicate that was found in the table is cached") {
  Remembering t;
  TxConsumer other(t.pool, "svc");
  CHECK(other.consume(order, add_effect).outcome == consumed);
  CHECK(t.consume(order) == duplicate);
  t.remove_rows();
  CHECK(t.consume(order) == duplicate);
}

TEST_CASE("a parked, torn or leased message is never cached") {
  Remembering t;
  TxConsumer other(t.pool, "svc");
  for (const std::string state : {"parked", "torn", "consuming"}) {
    CAPTURE(state);
    CHECK(other.consume(order, add_effect).outcome == consumed);
    t.db.run("update txinbox_consumed_message set state = '" + state + "'");
    CHECK(t.consume(order) != duplicate);
    CHECK(t.consume_batch({order})[0] != duplicate);
    t.remove_rows();
    t.db.run("delete from effect");
  }
  CHECK(t.consume(order) == consumed);
}

TEST_CASE("a message that failed or whose handler rolled back is never cached") {
  Remembering t;
  CHECK_THROWS((void)t.consumer.consume(order, [](soci::session& sql, Delivery& d) {
    add_effect(sql, d);
    throw std::runtime_error("no");
  }));
  CHECK(thrown_by([&] { (void)t.consumer.consume(order, [](soci::session& sql, Delivery&) { sql << "rollback"; }); }) ==
        "transaction_lost");
  const auto messages = messages_of({"a", "bad", "order123"});
  const Handler failing = [](soci::session& sql, Delivery& d) {
    add_effect(sql, d);
    if (d.message().business_key == "bad") throw std::runtime_error("no");
  };
  CHECK(outcomes(t.consumer.consume_batch(messages, failing)) == Outcomes{consumed, failed, Outcome::not_run});
  CHECK(outcomes(t.consumer.consume_batch(messages_of({"bad", "b"}), failing, OnFailure::skip)) ==
        Outcomes{failed, consumed});
  t.remove_rows();
  CHECK(t.consume_batch(messages_of({"a", "bad", "b", "order123"})) ==
        Outcomes{duplicate, consumed, duplicate, consumed});
}

TEST_CASE("a message that fails at COMMIT is never cached") {
  Remembering t;
  t.db.run("create table parent (id integer primary key)");
  t.db.run("create table child (id integer references parent(id) deferrable initially deferred)");
  const Handler orphan = [](soci::session& sql, Delivery&) { sql << "insert into child values (7)"; };
  CHECK_THROWS((void)t.consumer.consume(order, orphan));
  CHECK(outcomes(t.consumer.consume_batch({&order, 1}, orphan)) == Outcomes{failed});
  CHECK(t.consume(order) == consumed);
}

TEST_CASE("a batch answers cached keys without the database, and caches the keys that it consumed") {
  Remembering t;
  CHECK(t.consume({.business_key = "a"}) == consumed);
  CHECK(t.consume_batch(messages_of({"b", "c"})) == Outcomes{consumed, consumed});
  t.remove_rows();
  CHECK(t.consume({.business_key = "b"}) == duplicate);
  CHECK(t.consume_batch(messages_of({"x", "c", "a", "y", "x"})) ==
        Outcomes{consumed, duplicate, duplicate, consumed, duplicate});
  CHECK(t.db.claims() == 2);
  CHECK(t.db.effects() == 5);
}

TEST_CASE("each consumer has its own cache") {
  Remembering t;
  TxConsumer other_name(t.pool, "other", remembering);
  TxConsumer same_name(t.pool, "svc", remembering);
  CHECK(t.consume(order) == consumed);
  CHECK(other_name.consume(order, add_effect).outcome == consumed);
  t.remove_rows();
  CHECK(same_name.consume(order, add_effect).outcome == consumed);
  CHECK(t.consume(order) == duplicate);
}

TEST_CASE("the cache answers no key after the stop or inside a handler") {
  std::stop_source stop;
  ConsumerOptions options = remembering;
  options.stop = stop.get_token();
  Remembering t{options};
  CHECK(t.consume(order) == consumed);
  (void)t.consumer.consume({.business_key = "outer"}, [&](soci::session&, Delivery&) {
    CHECK(thrown_by([&] { (void)t.consume(order); }) == "nested_consume");
  });
  stop.request_stop();
  CHECK(thrown_by([&] { (void)t.consume(order); }) == "stopped");
  CHECK(thrown_by([&] { (void)t.consume_batch({order}); }) == "stopped");
}

TEST_CASE("a cache on a caller's session is refused, and so is an invalid age") {
  EffectDatabase db;
  const auto sql = db.session();
  CHECK(thrown_by([&] { const TxConsumer consumer(*sql, "svc", remembering); }) == "invalid_argument");
  Pool pool = db.pool(1);
  for (const milliseconds age : {milliseconds(0), milliseconds(-5), milliseconds::max()}) {
    CHECK(thrown_by([&] {
            const TxConsumer consumer(pool, "svc", {.recent_keys = {.capacity = 10, .max_age = age}});
          }) == "invalid_argument");
  }
  CHECK(thrown_by([&] { const TxConsumer consumer(*sql, "svc"); }) == "nothing");
}

}  // namespace
}  // namespace txinbox::test
