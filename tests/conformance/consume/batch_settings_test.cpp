// Settings that a handler changes on its session must not affect the claims of its batch, or of the next batch.

#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

const std::string key_sign = "\xe9\x8d\xb5";  // U+9375

TEST_CASE("an encoding that a handler sets does not change later keys of the batch" * doctest::skip(!on_postgresql())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const Handler handler = [](soci::session& sql, Delivery& d) {
    sql << "insert into effect values ('effect')";
    if (d.message().business_key == "a") sql << "set local client_encoding to 'LATIN1'";
    if (d.message().business_key == "z") throw std::runtime_error("so that the batch runs with savepoints");
  };
  const auto messages = messages_of({"a", key_sign, "z"});
  CHECK(outcomes(consumer.consume_batch(messages, handler, OnFailure::skip)) == Outcomes{consumed, consumed, failed});
  CHECK(outcomes(consumer.consume_batch(messages, handler, OnFailure::skip)) ==
        Outcomes{Outcome::already_consumed, Outcome::already_consumed, failed});
  CHECK(db.effects() == 2);
}

TEST_CASE("a Transaction claims exactly its key, for any encoding that was set inside the transaction" *
          doctest::skip(!on_postgresql())) {
  EffectDatabase db;
  const auto sql = db.session();
  {
    Transaction transaction(*sql);
    *sql << "set client_encoding to 'LATIN1'";
    CHECK(transaction.claim("svc", {.business_key = key_sign}) == Claim::claimed);
    transaction.commit();
  }
  *sql << "set client_encoding to 'UTF8'";
  Transaction again(*sql);
  CHECK(again.claim("svc", {.business_key = key_sign}) == Claim::already_consumed);
}

TEST_CASE("a limit on rows that a handler sets loses no message of the next batch" * doctest::skip(!on_mysql())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  (void)consumer.consume({.business_key = "limits"},
                         [](soci::session& sql, Delivery&) { sql << "set sql_select_limit = 1"; });
  CHECK(outcomes(consumer.consume_batch(messages_of({"d", "e", "f"}), add_effect)) ==
        Outcomes{consumed, consumed, consumed});
  CHECK(db.effects() == 3);
}

}  // namespace
}  // namespace txinbox::test
