// A handler that commits the transaction of its message: what the caller gets.

#include <chrono>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123"};

TEST_CASE("a commit of the handler that is refused is reported as transaction_lost" *
          doctest::skip(!pool_refuses_foreign_commit())) {
  // Where the database cannot refuse it: see torn_test.cpp.
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto committing = [](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    sql.commit();
  };
  CHECK(thrown_by([&] { (void)consumer.consume(order, committing); }) == "transaction_lost");
  const auto results = consumer.consume_batch(messages_of({"1", "2"}), committing, OnFailure::skip);
  for (const Result& each : results) CHECK(code_of(each.error) == ErrorCode::transaction_lost);
  // If the handler throws another exception, consume throws that one.
  const auto wrapping = [](soci::session& sql, Delivery&) {
    try {
      sql.commit();
    } catch (const soci::soci_error&) {
      throw std::invalid_argument("cannot");
    }
  };
  CHECK(thrown_by([&] { (void)consumer.consume(order, wrapping); }) == "other");
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
  CHECK(db.effects() == 1);
}

TEST_CASE("if a handler commits and then asks for a later delivery, its message is torn" *
          doctest::skip(pool_refuses_foreign_commit())) {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc");
  const auto handler = [](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    sql << "commit";
    throw RetryLater(std::chrono::seconds(30));
  };
  CHECK(thrown_by([&] { (void)consumer.consume(order, handler); }) == "transaction_lost");
  CHECK(consumer.consume(order, add_effect).outcome == parked);
  const auto results = consumer.consume_batch(messages_of({"1", "2"}), handler);
  CHECK(code_of(results[0].error) == ErrorCode::transaction_lost);
}

}  // namespace
}  // namespace txinbox::test
