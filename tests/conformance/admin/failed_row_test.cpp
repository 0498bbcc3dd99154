// Parked and torn rows without a counted failure.

#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123", .message_id = "m1"};

void set_state(const TestDatabase& db, const std::string& state) {
  db.run("update txinbox_consumed_message set state = '" + state + "'");
}

TEST_CASE("a row that an operator set to parked is listed if the filter names its key, and can be retried") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
  const auto sql = db.session();
  const FailedFilter this_one{.consumer = "svc", .business_key = "order123"};
  CHECK(list_failed(*sql, this_one).empty());
  CHECK(retry_failed(*sql, this_one) == 0);
  set_state(db, "parked");
  const auto found = list_failed(*sql, this_one);
  REQUIRE(found.size() == 1);
  CHECK(found[0].state == FailedState::parked);
  CHECK(found[0].attempts == 0);
  CHECK(found[0].message_id == "m1");
  CHECK(list_failed(*sql, {.consumer = "svc", .business_key = "order123", .state = FailedState::torn}).empty());
  CHECK(
      list_failed(*sql, {.consumer = "svc", .business_key = "order123", .older_than = std::chrono::hours(1)}).empty());
  CHECK(list_failed(*sql, {.consumer = "svc", .business_key = "order123", .limit = 0}).empty());
  CHECK(retry_failed(*sql, this_one) == 1);
  CHECK(db.claims() == 0);
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
}

TEST_CASE("a torn row without a counted failure cannot be retried, and can be discarded") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
  set_state(db, "torn");
  const auto sql = db.session();
  const FailedFilter this_one{.consumer = "svc", .business_key = "order123"};
  CHECK(retry_failed(*sql, this_one) == 0);
  CHECK(discard_failed(*sql, this_one) == 1);
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::discarded);
  CHECK(list_failed(*sql, this_one).empty());
  CHECK(list_failed(*sql, {.consumer = "svc", .business_key = "order123", .state = FailedState::discarded}).size() ==
        1);
}

TEST_CASE("a retry that was interrupted after it reset the count can be repeated") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  CHECK(consumer.consume(order, [](soci::session&) { throw std::runtime_error("no"); }).outcome == parked);
  db.run("update txinbox_failed_message set attempts = 0");
  const auto sql = db.session();
  CHECK(consumer.consume(order, add_effect).outcome == parked);
  CHECK(list_failed(*sql).size() == 1);
  CHECK(retry_failed(*sql, {}) == 1);
  CHECK(list_failed(*sql).empty());
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
}

}  // namespace
}  // namespace txinbox::test
