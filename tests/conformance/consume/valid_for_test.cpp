// Message::valid_for: a row that is older does not count.

#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/proxy.hpp"
#include "support/sql_time.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

const Message click{.business_key = "click", .content = "one", .valid_for = 60s};
const Message other_click{.business_key = "click", .content = "two", .valid_for = 60s};

void store_content(soci::session& sql, Delivery& delivery) {
  add_effect(sql, delivery);
  delivery.store(delivery.message().content);
}

TEST_CASE("a row within valid_for makes a duplicate, and an older row is taken over, also with other content") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.recent_keys = {.capacity = 10}});
  CHECK(consumer.consume(click, store_content).outcome == consumed);
  make_older(db, "business_key = 'click'", 10s);
  CHECK(consumer.consume(click, store_content).stored == "one");
  CHECK(consumer.consume(other_click, store_content).outcome == conflict);
  make_older(db, "business_key = 'click'", 61s);
  CHECK(consumer.consume({.business_key = "click", .content = "one"}, store_content).outcome == duplicate);
  const Result again = consumer.consume(other_click, store_content);
  CHECK(again.outcome == consumed);
  CHECK(again.stored == "two");
  CHECK(consumer.consume(other_click, store_content).stored == "two");
  CHECK(consumer.consume(click, store_content).outcome == conflict);
  CHECK(db.effects() == 2);
  CHECK(db.claims() == 1);
}

TEST_CASE("if the handler that takes an old row over fails, the old row stays") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume(click, store_content).outcome == consumed);
  make_older(db, "business_key = 'click'", 61s);
  const auto fails = [](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    throw std::runtime_error("no");
  };
  CHECK(thrown_by([&] { (void)consumer.consume(other_click, fails); }) == "other");
  CHECK(consumer.consume({.business_key = "click", .content = "one"}, store_content).stored == "one");
  CHECK(consumer.consume(other_click, store_content).outcome == consumed);
  CHECK(db.effects() == 2);
}

TEST_CASE("a batch takes old rows over, too") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const std::vector<Message> clicks = {{.business_key = "a", .content = "1", .valid_for = 60s},
                                       {.business_key = "b", .content = "1", .valid_for = 60s},
                                       {.business_key = "c", .content = "1"}};
  CHECK(outcomes(consumer.consume_batch(clicks, add_effect)) == Outcomes{consumed, consumed, consumed});
  make_older(db, "business_key <> 'b'", 61s);
  CHECK(outcomes(consumer.consume_batch(clicks, add_effect)) == Outcomes{consumed, duplicate, duplicate});
  CHECK(db.effects_of("a") == 2);
  CHECK(db.effects() == 4);
}

TEST_CASE("valid_for counts from the end of the handler, however long it has run") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto takes_long = [](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    sql << "update txinbox_consumed_message set consumed_at = " + sql_time(-61s) + " where business_key = '" +
               delivery.message().business_key + "'";
  };
  CHECK(consumer.consume(click, takes_long).outcome == consumed);
  CHECK(consumer.consume(click, add_effect).outcome == duplicate);
  const std::vector<Message> batch = {{.business_key = "a", .valid_for = 60s}, {.business_key = "b", .valid_for = 60s}};
  CHECK(outcomes(consumer.consume_batch(batch, takes_long)) == Outcomes{consumed, consumed});
  CHECK(outcomes(consumer.consume_batch(batch, add_effect)) == Outcomes{duplicate, duplicate});
  make_older(db, "business_key = 'click'", 61s);
  CHECK(consumer.consume(click, takes_long).outcome == consumed);
  CHECK(consumer.consume(click, add_effect).outcome == duplicate);
  CHECK(db.effects() == 4);
}

TEST_CASE("a commit whose reply is lost counts, even if its row is older than valid_for at the retry" *
          doctest::skip(!has_server())) {
  const EffectDatabase db;
  Proxy proxy(db.url());
  Pool pool = open_pool(proxy.url(), {.connections = 1});
  TxConsumer consumer(pool, "svc", {.retry = {.initial_backoff = 200ms, .max_backoff = 200ms}});
  const Message short_lived{.business_key = "single", .valid_for = 1ms};
  const std::vector<Message> batch = {{.business_key = "a", .valid_for = 1ms}, {.business_key = "b", .valid_for = 1ms}};
  int runs = 0;
  // The replies before the reply of the COMMIT: to the release, to the confirmation, and for each row to the new time.
  int spared = has_procedures() ? 3 : 0;
  const Handler handler = [&](soci::session& sql, Delivery& delivery) {
    ++runs;
    add_effect(sql, delivery);
    if (delivery.message().business_key != "a") proxy.lose_reply(spared);
  };
  CHECK(consumer.consume(short_lived, handler).outcome == consumed);
  CHECK(proxy.lost() == 1);
  CHECK(runs == 1);
  if (has_procedures()) spared = 4;
  CHECK(outcomes(consumer.consume_batch(batch, handler)) == Outcomes{consumed, consumed});
  CHECK(proxy.lost() == 2);
  CHECK(runs == 3);
  CHECK(db.effects() == 3);
}

TEST_CASE("of several deliveries that find an old row at the same time, one runs") {
  const EffectDatabase db;
  Pool pool = db.pool(4);
  TxConsumer consumer(pool, "svc");
  for (int round = 1; round <= 10; ++round) {
    std::vector<std::future<Outcome>> copies;
    for (int i = 0; i < 4; ++i) {
      copies.push_back(std::async(std::launch::async, [&] { return consumer.consume(click, add_effect).outcome; }));
    }
    int ran = 0;
    for (auto& copy : copies) ran += copy.get() == consumed ? 1 : 0;
    CHECK(ran == 1);
    CHECK(db.effects() == round);
    make_older(db, "business_key = 'click'", 61s);
  }
}

TEST_CASE("a parked row does not expire") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto reject = [](soci::session&) { throw Error(ErrorCode::rejected, "no"); };
  CHECK(consumer.consume(click, reject).outcome == parked);
  make_older(db, "business_key = 'click'", 61s);
  CHECK(consumer.consume(click, add_effect).outcome == parked);
  CHECK(db.effects() == 0);
}

TEST_CASE("a LeaseConsumer takes an old row over with a greater fence") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  LeaseConsumer consumer(pool, "svc", {}, {.max_result = 3});
  std::int64_t fence = 0;
  CHECK(consumer
            .consume(click,
                     [&](Lease& lease) {
                       fence = lease.fence();
                       lease.delivery().store("one");
                     })
            .outcome == consumed);
  CHECK(consumer.consume(click, [](Lease&) { FAIL("the handler of a duplicate ran"); }).stored == "one");
  make_older(db, "business_key = 'click'", 61s);
  const Result again = consumer.consume(other_click, [&](Lease& lease) {
    CHECK(lease.fence() > fence);
    CHECK(db.number("select count(*) from txinbox_consumed_message where result is null") == 1);
  });
  CHECK(again.outcome == consumed);
  CHECK(consumer.consume(click, [](Lease&) { FAIL("the handler of a conflict ran"); }).outcome == conflict);
  CHECK(consumer.consume(other_click, [](Lease&) { FAIL("the handler of a duplicate ran"); }).stored == std::nullopt);
}

TEST_CASE("a negative valid_for is refused") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(thrown_by([&] { (void)consumer.consume({.business_key = "k", .valid_for = -1ms}, add_effect); }) ==
        "invalid_key");
}

}  // namespace
}  // namespace txinbox::test
