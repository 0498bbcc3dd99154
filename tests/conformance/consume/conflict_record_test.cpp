// The record of a delivery whose content differs from the content of its key.

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

const Message original{.business_key = "order123", .message_id = "m1", .content = "100 EUR"};
const Message other{.business_key = "order123", .message_id = "m2", .content = "999 EUR"};
const Message third{.business_key = "order123", .message_id = "m3", .content = "1 EUR"};

long long rows_in(const TestDatabase& db) { return db.number("select count(*) from txinbox_conflicting_message"); }

/// A column of the record of the delivery with this id.
std::string recorded(const TestDatabase& db, const std::string& column, const std::string& id) {
  return db.text("select " + column + " from txinbox_conflicting_message where message_id = '" + id + "'");
}

void conflicts(TxConsumer& consumer, const Message& message) {
  CHECK(consumer.consume(message, add_effect).outcome == conflict);
}

TEST_CASE("a conflict is recorded with both hashes, both ids, its times and the state of the row") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume(original, add_effect).outcome == consumed);
  conflicts(consumer, other);
  REQUIRE(rows_in(db) == 1);
  CHECK(recorded(db, "original_message_id", "m2") == "m1");
  CHECK(recorded(db, "reason", "m2") == "consumed");
  CHECK(recorded(db, "consumer", "m2") == "svc");
  CHECK(recorded(db, "business_key", "m2") == "order123");
  CHECK(db.number("select count(*) from txinbox_conflicting_message f, txinbox_consumed_message c "
                  "where f.original_hash = c.content_hash and f.content_hash <> c.content_hash and "
                  "f.first_at <= f.last_at and f.deliveries = 1") == 1);
  CHECK(db.effects() == 1);
}

TEST_CASE("a conflict is one row for each content, which counts its deliveries") {
  const EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  CHECK(consumer.consume(original, add_effect).outcome == consumed);
  for (int i = 0; i < 3; ++i) conflicts(consumer, other);
  conflicts(consumer, third);
  CHECK(rows_in(db) == 2);
  CHECK(recorded(db, "deliveries", "m2") == "3");
  CHECK(recorded(db, "deliveries", "m3") == "1");
  CHECK(consumer.consume(original, add_effect).outcome == duplicate);
  CHECK(rows_in(db) == 2);
}

TEST_CASE("the table of conflicts has at most max_conflicts contents of a key") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_conflicts = 3});
  TxConsumer silent(pool, "svc", {.max_conflicts = 0});
  CHECK(consumer.consume(original, add_effect).outcome == consumed);
  conflicts(silent, other);
  CHECK(rows_in(db) == 0);
  for (int i = 0; i < 10; ++i) {
    conflicts(consumer,
              {.business_key = "order123", .message_id = "m" + std::to_string(i), .content = std::to_string(i)});
  }
  CHECK(rows_in(db) == 3);
  conflicts(consumer, {.business_key = "order123", .message_id = "again", .content = "1"});
  CHECK(recorded(db, "deliveries", "again") == "2");
  CHECK(consumer.consume({.business_key = "another", .content = "1"}, add_effect).outcome == consumed);
  conflicts(consumer, {.business_key = "another", .message_id = "n", .content = "2"});
  CHECK(rows_in(db) == 4);
  const auto results = consumer.consume_batch(
      std::vector<Message>{{.business_key = "order123", .content = "a"}, {.business_key = "another", .content = "b"}},
      add_effect, OnFailure::skip);
  CHECK(outcomes(results) == Outcomes{conflict, conflict});
  CHECK(rows_in(db) == 5);
}

TEST_CASE("a row without a hash and a message without content cause no conflict") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume({.business_key = "bare"}, add_effect).outcome == consumed);
  CHECK(consumer.consume({.business_key = "bare", .content = "100 EUR"}, add_effect).outcome == duplicate);
  CHECK(consumer.consume(original, add_effect).outcome == consumed);
  CHECK(consumer.consume({.business_key = "order123"}, add_effect).outcome == duplicate);
  CHECK(rows_in(db) == 0);
}

TEST_CASE("a batch records conflicts with existing rows and among its own messages") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume(original, add_effect).outcome == consumed);
  const std::vector<Message> batch{other,
                                   {.business_key = "new", .message_id = "n1", .content = "a"},
                                   {.business_key = "new", .message_id = "n2", .content = "b"}};
  CHECK(outcomes(consumer.consume_batch(batch, add_effect)) == Outcomes{conflict, consumed, conflict});
  CHECK(rows_in(db) == 2);
  CHECK(recorded(db, "original_message_id", "m2") == "m1");
  CHECK(recorded(db, "original_message_id", "n2") == "n1");
}

TEST_CASE("the listener gets the event of a conflict") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  int told = 0;
  TxConsumer consumer(pool, "svc", {.listeners = {on_event([&](const Event& event) {
                                      if (event.type == EventType::conflict && event.business_key == "order123") ++told;
                                    })}});
  CHECK(consumer.consume(original, add_effect).outcome == consumed);
  conflicts(consumer, other);
  CHECK(told == 1);
}

TEST_CASE("if a conflict cannot be recorded, it is not reported, and the message is delivered again") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume(original, add_effect).outcome == consumed);
  db.run("alter table txinbox_conflicting_message rename to gone");
  CHECK_THROWS_AS((void)consumer.consume(other, add_effect), soci::soci_error);
  const std::vector<Message> batch{{.business_key = "next"}, other};
  const auto results = consumer.consume_batch(batch, add_effect, OnFailure::skip);
  CHECK(outcomes(results) == Outcomes{consumed, failed});
  CHECK(action_for(results[1]) == Action::redeliver);
  db.run("alter table gone rename to txinbox_conflicting_message");
  conflicts(consumer, other);
  CHECK(db.effects() == 2);
}

}  // namespace
}  // namespace txinbox::test
