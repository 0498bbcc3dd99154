// One handler for all new messages of a batch: what its SQL does on the database.

#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/native.hpp>
#include <txinbox/txinbox.hpp>

#include "../examples/payments.hpp"
#include "support/batch_kit.hpp"
#include "support/effects.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
TEST_CASE("if the handler of a batch ends the transaction, no message is acknowledged, and none takes effect twice") {
  for (const char* statement : {"commit", "rollback"}) {
    CAPTURE(statement);
    on_each_connection([&](const EffectDatabase& db, TxConsumer& consumer) {
      const auto messages = messages_of({"a", "b", "c"});
      const auto results = consumer.consume_batch(
          messages,
          [&](soci::session& sql, Deliveries deliveries) {
            add_effects(sql, deliveries);
            sql << statement;
          },
          OnFailure::skip);
      for (const Result& each : results) CHECK(action_for(each) != Action::acknowledge);
      // If the server cannot refuse the commit, the messages that may have taken effect are parked.
      for (const Result& each : consumer.consume_batch(messages, add_effects, OnFailure::skip)) {
        CHECK((each.outcome == consumed || each.outcome == parked));
      }
      for (const char* key : {"a", "b", "c"}) CHECK(db.effects_of(key) == 1);
    });
  }
}

TEST_CASE("a handler of a batch can get the connection of the client library") {
  const EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(native_handle(*sql), "svc");
  std::size_t count = 0;
  const auto handler = [&](NativeHandle connection, Deliveries deliveries) {
    CHECK(connection.database() == sql->get_backend_name());
    count += deliveries.size();
  };
  CHECK(outcomes(consumer.consume_batch(messages_of({"a", "b"}), handler)) == Outcomes{consumed, consumed});
  CHECK(count == 2);
  CHECK(code_of(consumer.consume_batch(messages_of({"c"}), add_effects)[0].error) == ErrorCode::invalid_argument);
}

TEST_CASE("the batch handler of the documentation adds each payment once") {
  const EffectDatabase db;
  db.run("create table balance (account varchar(64) not null primary key, cents bigint not null)");
  Pool pool = db.pool();
  TxConsumer consumer(pool, "balances");
  const std::vector<Message> polled = {{.business_key = "p1", .content = "alice 1250"},
                                       {.business_key = "p2", .content = R"(o"\x 700)"},
                                       {.business_key = "p3", .content = "nobody knows"},
                                       {.business_key = "p4", .content = "alice 50"},
                                       {.business_key = "p1", .content = "alice 1250"}};
  CHECK(outcomes(consumer.consume_batch(polled, add_payments, OnFailure::skip)) ==
        Outcomes{consumed, consumed, parked, consumed, duplicate});
  const std::vector<Message> more = {{.business_key = "p5", .content = "alice 700"}};
  CHECK(outcomes(consumer.consume_batch(more, add_payments)) == Outcomes{consumed});
  CHECK(db.number("select cents from balance where account = 'alice'") == 2000);
  CHECK(db.number("select cents from balance where account <> 'alice'") == 700);
  CHECK(db.number("select count(*) from balance") == 2);
}

}  // namespace txinbox::test
