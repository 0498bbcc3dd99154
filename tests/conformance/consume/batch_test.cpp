// A batch gives the same guarantees as one message after another.

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

struct NoStock : std::runtime_error {
  NoStock() : std::runtime_error("no stock") {}
};

/// A handler that writes its effect, and then fails for these keys.
Handler failing_for(std::vector<std::string> keys) {
  return [keys = std::move(keys)](soci::session& sql, Delivery& d) {
    add_effect(sql, d);
    if (std::find(keys.begin(), keys.end(), d.message().business_key) != keys.end()) throw NoStock();
  };
}

TEST_CASE("a batch consumes each message once, and no duplicate") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  const auto messages = messages_of({"c", "a", "b"});
  CHECK(outcomes(consumer.consume_batch(messages, add_effect)) == Outcomes{consumed, consumed, consumed});
  CHECK(outcomes(consumer.consume_batch(messages, add_effect)) == Outcomes{duplicate, duplicate, duplicate});
  const auto mixed = messages_of({"d", "a", "e"});
  CHECK(outcomes(consumer.consume_batch(mixed, add_effect)) == Outcomes{consumed, duplicate, consumed});
  CHECK(db.effects() == 5);
  CHECK(db.claims() == 5);
}

TEST_CASE("a batch on a caller's session does not change its settings") {
  EffectDatabase db;
  const auto sql = db.session();
  const std::string before = db.settings_of(*sql);
  TxConsumer consumer(*sql, "order-service");
  const auto messages = messages_of({"c", "a", "b"});
  CHECK(outcomes(consumer.consume_batch(messages, add_effect)) == Outcomes{consumed, consumed, consumed});
  CHECK(outcomes(consumer.consume_batch(messages, failing_for({"a"}))) == Outcomes{duplicate, duplicate, duplicate});
  CHECK(outcomes(consumer.consume_batch(messages_of({"d", "e", "a"}), failing_for({"d"}), OnFailure::skip)) ==
        Outcomes{failed, consumed, duplicate});
  CHECK(db.settings_of(*sql) == before);
  CHECK(db.effects() == 4);
}

TEST_CASE("the handlers of a batch run in the given order and get their index") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  (void)consumer.consume({.business_key = "m"}, add_effect);
  std::vector<std::string> seen;
  const auto messages = messages_of({"z", "m", "a", "k"});
  (void)consumer.consume_batch(messages, [&](soci::session&, Delivery& d) {
    CHECK(d.attempt() == 1);
    seen.push_back(d.message().business_key + std::to_string(d.index()));
  });
  CHECK(seen == std::vector<std::string>{"z0", "a2", "k3"});
}

TEST_CASE("a batch may have no message, one message or ten thousand messages") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  CHECK(consumer.consume_batch({}, add_effect).empty());
  CHECK(outcomes(consumer.consume_batch(messages_of({"one"}), add_effect)) == Outcomes{consumed});

  std::vector<Message> many;
  for (int i = 0; i < 10'000; ++i) many.push_back({.business_key = "order-" + std::to_string(i)});
  const auto first = consumer.consume_batch(many, [](soci::session&, Delivery&) {});
  CHECK(std::ranges::all_of(first, [](const Result& r) { return r.outcome == consumed; }));
  const auto again =
      consumer.consume_batch(many, [](soci::session&, Delivery&) { FAIL("the handler of a duplicate ran"); });
  CHECK(std::ranges::all_of(again, [](const Result& r) { return r.outcome == duplicate; }));
  CHECK(db.claims() == 10'001);
}

TEST_CASE("with stop, messages before a failure are committed, and messages after it are not run") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  const auto results = consumer.consume_batch(messages_of({"d", "c", "bad", "b", "a"}), failing_for({"bad"}));
  CHECK(outcomes(results) == Outcomes{consumed, consumed, failed, not_run, not_run});
  CHECK_THROWS_AS(std::rethrow_exception(results[2].error), NoStock);
  CHECK(action_for(results[2]) == Action::redeliver);
  CHECK(action_for(results[3]) == Action::redeliver);
  CHECK(db.effects() == 2);
  CHECK(db.claims() == 2);
  // The redelivery finds exactly the messages before the failure consumed.
  CHECK(outcomes(consumer.consume_batch(messages_of({"d", "c", "bad", "b", "a"}), add_effect)) ==
        Outcomes{duplicate, duplicate, consumed, consumed, consumed});
  CHECK(db.effects() == 5);
}

TEST_CASE("with skip, failing messages leave neither claim nor effect, and the others are consumed") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  const auto messages = messages_of({"e", "bad1", "c", "bad2", "a"});
  const auto results = consumer.consume_batch(messages, failing_for({"bad1", "bad2"}), OnFailure::skip);
  CHECK(outcomes(results) == Outcomes{consumed, failed, consumed, failed, consumed});
  CHECK(db.effects() == 3);
  CHECK(db.claims() == 3);
  CHECK(outcomes(consumer.consume_batch(messages, add_effect)) ==
        Outcomes{duplicate, consumed, duplicate, consumed, duplicate});
}

TEST_CASE("an error of the handler's SQL fails only its own message") {
  EffectDatabase db;
  db.run("create table t_order (no varchar(40) not null primary key)");
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  const auto results = consumer.consume_batch(
      messages_of({"a", "b", "c"}),
      [](soci::session& sql, Delivery& d) {
        add_effect(sql, d);
        const std::string no = d.message().business_key == "c" ? "a" : d.message().business_key;
        sql << "insert into t_order values (:no)", soci::use(no);
      },
      OnFailure::skip);
  CHECK(outcomes(results) == Outcomes{consumed, consumed, failed});
  CHECK_THROWS_AS(std::rethrow_exception(results[2].error), soci::soci_error);
  CHECK(db.effects() == 2);
}

TEST_CASE("an invalid key fails only its own message, with stop and with skip") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  const auto messages = messages_of({"a", "", "b", std::string(256, 'x')});
  const auto stopped = consumer.consume_batch(messages, add_effect);
  CHECK(outcomes(stopped) == Outcomes{consumed, failed, not_run, not_run});
  CHECK(action_for(stopped[1]) == Action::dead_letter);
  const auto skipped = consumer.consume_batch(messages, add_effect, OnFailure::skip);
  CHECK(outcomes(skipped) == Outcomes{duplicate, failed, consumed, failed});
  CHECK(action_for(skipped[3]) == Action::dead_letter);
  CHECK(db.effects() == 2);
}

TEST_CASE("with stop, an invalid key after a failure is not reported") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  const auto results = consumer.consume_batch(messages_of({"a", "bad", "", "b"}), failing_for({"bad"}));
  CHECK(outcomes(results) == Outcomes{consumed, failed, not_run, not_run});
}

TEST_CASE("the first of several copies in a batch runs, and the others are reported as duplicates") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  const auto results = consumer.consume_batch(messages_of({"a", "b", "a", "a"}), [](soci::session& sql, Delivery& d) {
    add_effect(sql, d);
    d.store("by " + std::to_string(d.index()));
  });
  CHECK(outcomes(results) == Outcomes{consumed, consumed, duplicate, duplicate});
  CHECK(results[2].stored == "by 0");
  CHECK(results[3].stored == "by 0");
  CHECK(db.effects() == 2);
}

TEST_CASE("the copy of a failed message runs with skip, and does not with stop") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  const Handler first_copy_fails = [](soci::session& sql, Delivery& d) {
    add_effect(sql, d);
    if (d.index() == 0) throw NoStock();
  };
  const auto messages = messages_of({"a", "a", "a", "b"});
  CHECK(outcomes(consumer.consume_batch(messages, first_copy_fails)) == Outcomes{failed, not_run, not_run, not_run});
  CHECK(db.claims() == 0);
  CHECK(outcomes(consumer.consume_batch(messages, first_copy_fails, OnFailure::skip)) ==
        Outcomes{failed, consumed, duplicate, consumed});
  CHECK(db.effects() == 2);
}

TEST_CASE("a copy with other content than in the batch or in the table is a conflict") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  const std::vector<Message> messages = {{.business_key = "a", .content = "100"},
                                         {.business_key = "a", .content = "999"},
                                         {.business_key = "a", .content = "100"},
                                         {.business_key = "a"}};
  const Outcomes all = {consumed, Outcome::conflict, duplicate, duplicate};
  CHECK(outcomes(consumer.consume_batch(messages, add_effect)) == all);
  const Outcomes again = {duplicate, Outcome::conflict, duplicate, duplicate};
  CHECK(outcomes(consumer.consume_batch(messages, add_effect)) == again);
  CHECK(action_for(consumer.consume_batch(messages, add_effect)[1]) == Action::dead_letter);
  CHECK(db.effects() == 1);
}

TEST_CASE("each duplicate gets the result that the handler of a batch stored") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  // These results are too large for one round trip.
  std::vector<Message> messages;
  for (int i = 0; i < 12; ++i) messages.push_back({.business_key = "k" + std::to_string(i)});
  const auto first = consumer.consume_batch(messages, [](soci::session&, Delivery& d) {
    if (d.index() != 5) d.store(std::string(60'000, static_cast<char>('a' + d.index())));
  });
  const auto again = consumer.consume_batch(messages, add_effect);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    CHECK(first[i].outcome == consumed);
    CHECK(again[i].outcome == duplicate);
    CHECK(first[i].stored == again[i].stored);
    CHECK(again[i].stored.has_value() == (i != 5));
  }
  CHECK(again[3].stored == std::string(60'000, 'd'));
}

TEST_CASE("a batch reports the state of each row that is not consumed") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  (void)consumer.consume_batch(messages_of({"parked", "torn", "leased", "odd"}), add_effect);
  for (const std::string state : {"parked", "torn"}) {
    db.run("update txinbox_consumed_message set state = '" + state + "' where business_key = '" + state + "'");
  }
  db.run("update txinbox_consumed_message set state = 'consuming' where business_key = 'leased'");
  db.run("update txinbox_consumed_message set state = 'surprise' where business_key = 'odd'");
  const auto results =
      consumer.consume_batch(messages_of({"a", "parked", "torn", "leased", "odd", "b"}), add_effect, OnFailure::skip);
  CHECK(outcomes(results) ==
        Outcomes{consumed, Outcome::parked, Outcome::parked, Outcome::in_progress, failed, consumed});
  CHECK(code_of(results[4].error) == ErrorCode::unknown_state);
}

TEST_CASE("with stop, messages after one that another worker holds are not run") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  (void)consumer.consume({.business_key = "leased"}, add_effect);
  db.run("update txinbox_consumed_message set state = 'consuming'");
  int runs = 0;
  const Handler counting = [&](soci::session& sql, Delivery& d) {
    ++runs;
    add_effect(sql, d);
  };
  CHECK(outcomes(consumer.consume_batch(messages_of({"z", "leased", "a"}), counting)) ==
        Outcomes{consumed, Outcome::in_progress, not_run});
  CHECK(runs == 1);
  CHECK(db.claims() == 2);
  // The same holds if the batch runs with savepoints.
  CHECK(outcomes(consumer.consume_batch(messages_of({"y", "leased", "bad", "a"}), failing_for({"y"}))) ==
        Outcomes{failed, not_run, not_run, not_run});
  CHECK(outcomes(consumer.consume_batch(messages_of({"y", "leased", "a"}), counting, OnFailure::skip)) ==
        Outcomes{consumed, Outcome::in_progress, consumed});
}

TEST_CASE("in a batch of one message, a handler that fails runs once") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  int runs = 0;
  const auto results = consumer.consume_batch(messages_of({"a"}), [&](soci::session&, Delivery&) {
    ++runs;
    throw NoStock();
  });
  CHECK(outcomes(results) == Outcomes{failed});
  CHECK(runs == 1);
}

TEST_CASE("the listener gets an event for each message of a batch that was run") {
  EffectDatabase db;
  Pool pool = db.pool();
  std::vector<std::string> heard;
  TxConsumer consumer(pool, "order-service",
                      {.listeners = {on_event([&](const Event& e) {
                         heard.push_back(std::string(to_string(e.type)) + " " + std::string(e.business_key));
                       })}});
  (void)consumer.consume_batch(messages_of({"a", "a", "bad", "b"}), failing_for({"bad"}));
  CHECK(heard == std::vector<std::string>{"consumed a", "already_consumed a", "failed bad"});
}

TEST_CASE("a batch inside a handler is refused, and so is a batch that begins after the stop") {
  EffectDatabase db;
  Pool pool = db.pool();
  std::stop_source stop;
  TxConsumer consumer(pool, "order-service", {.stop = stop.get_token()});
  const auto messages = messages_of({"a", "b"});
  ErrorCode nested{};
  (void)consumer.consume({.business_key = "outer"}, [&](soci::session&, Delivery&) {
    try {
      (void)consumer.consume_batch(messages, add_effect);
    } catch (const Error& e) {
      nested = e.code();
    }
  });
  CHECK(nested == ErrorCode::nested_consume);
  stop.request_stop();
  CHECK_THROWS_AS((void)consumer.consume_batch(messages, add_effect), Error);
  CHECK(db.effects() == 0);
}

TEST_CASE("after a stop, the running transaction finishes, and no other transaction begins") {
  EffectDatabase db;
  Pool pool = db.pool();
  std::stop_source stop;
  TxConsumer consumer(pool, "order-service", {.stop = stop.get_token()});
  const auto results = consumer.consume_batch(messages_of({"a", "b"}), [&](soci::session& sql, Delivery& d) {
    stop.request_stop();
    add_effect(sql, d);
  });
  CHECK(outcomes(results) == Outcomes{consumed, consumed});

  std::stop_source again;
  TxConsumer other(pool, "order-service", {.stop = again.get_token()});
  const auto unfinished = other.consume_batch(messages_of({"c", "d"}), [&](soci::session& sql, Delivery& d) {
    again.request_stop();
    add_effect(sql, d);
    throw NoStock();
  });
  CHECK(outcomes(unfinished) == Outcomes{not_run, not_run});
  CHECK(db.effects() == 2);
}

}  // namespace
}  // namespace txinbox::test
