// `OnFailure::stop_at_parked`: no message of a batch overtakes one that is parked.

#include <span>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

void fail_for_bad(soci::session& sql, Delivery& delivery) {
  add_effect(sql, delivery);
  if (delivery.message().business_key == "bad") throw std::runtime_error("no stock");
}

TEST_CASE("the messages behind a parked one do not run") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  const auto messages = messages_of({"d", "c", "bad", "a", "b"});
  for (const int max_attempts : {1, 2}) {  // the second consumer counts a failure first
    CAPTURE(max_attempts);
    db.run("delete from effect");
    TxConsumer consumer(pool, "svc-" + std::to_string(max_attempts), {.max_attempts = max_attempts});
    const auto deliver = [&](const BatchHandlers& handlers) {
      return outcomes(consumer.consume_batch(messages, handlers, OnFailure::stop_at_parked));
    };
    if (max_attempts == 2) CHECK(deliver(fail_for_bad) == Outcomes{consumed, consumed, failed, not_run, not_run});
    const Outcome before = max_attempts == 2 ? duplicate : consumed;
    CHECK(deliver(fail_for_bad) == Outcomes{before, before, parked, not_run, not_run});
    CHECK(deliver(add_effect) == Outcomes{duplicate, duplicate, parked, not_run, not_run});
    CHECK(db.effects() == 2);

    const BatchHandler at_once = [](soci::session& sql, std::span<Delivery> deliveries) {
      for (Delivery& each : deliveries) add_effect(sql, each);
    };
    CHECK(deliver(at_once) == Outcomes{duplicate, duplicate, parked, not_run, not_run});
    CHECK(db.effects() == 2);
    CHECK(outcomes(consumer.consume_batch(messages_of({"bad", "e"}), add_effect)) == Outcomes{parked, consumed});

    CHECK(retry_failed(pool.acquire().session(), {.consumer = std::string(consumer.name())}) == 1);
    CHECK(deliver(at_once) == Outcomes{duplicate, duplicate, consumed, consumed, consumed});
    CHECK(db.effects() == 6);
  }
}

TEST_CASE("with count_starts, the messages behind a parked one do not run") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1, .count_starts = true});
  const auto messages = messages_of({"a", "bad", "b"});
  for (const Outcome first : {consumed, duplicate}) {
    CHECK(outcomes(consumer.consume_batch(messages, fail_for_bad, OnFailure::stop_at_parked)) ==
          Outcomes{first, parked, not_run});
  }
  CHECK(db.effects() == 1);
}

}  // namespace
}  // namespace txinbox::test
