// The connection of a handler is killed. The transaction runs again, and takes effect once.

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/guard_cases.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123"};

/// The steps of a handler at which its connection is killed on the first run.
enum class Kill { before_the_first_statement, between_statements, after_the_last_statement };

TEST_CASE("a connection that is killed at any step of the handler is replaced, and the message takes effect once" *
          doctest::skip(!has_server())) {
  for (const Kill step : {Kill::before_the_first_statement, Kill::between_statements, Kill::after_the_last_statement}) {
    CAPTURE(static_cast<int>(step));
    EffectDatabase db;
    Pool pool = db.pool(2);
    std::vector<std::string_view> events;
    TxConsumer consumer(pool, "svc",
                        {.listeners = {on_event([&](const Event& e) { events.push_back(to_string(e.type)); })}});
    const Result result = consumer.consume(order, [&](soci::session& sql, Delivery& d) {
      const auto kill_at = [&](Kill now) {
        if (now == step && d.attempt() == 1) kill_connection(sql, db);
      };
      kill_at(Kill::before_the_first_statement);
      add_effect(sql, d);
      kill_at(Kill::between_statements);
      add_effect(sql, d);
      kill_at(Kill::after_the_last_statement);
    });
    CHECK(result.outcome == Outcome::consumed);
    CHECK(db.effects() == 2);
    CHECK(db.claims() == 1);
    std::string heard;
    for (const std::string_view each : events) heard.append(each).append(" ");
    CHECK(heard == "retry consumed ");
    CHECK(consumer.consume(order, add_effect).outcome == Outcome::already_consumed);
  }
}

TEST_CASE("a handler that hides that its connection is lost runs again, and this is no failure of its message" *
          doctest::skip(!has_server())) {
  EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  int runs = 0;
  const Handler handler = [&](soci::session& sql, Delivery& d) {
    if (d.message().business_key == "bad") throw std::runtime_error("it fails, so that the next one has a savepoint");
    add_effect(sql, d);
    if (++runs > 1) return;
    kill_connection(sql, db);
    quietly([&] { add_effect(sql, d); });
  };
  const BatchHandler at_once = [&](soci::session& sql, std::span<Delivery> deliveries) {
    handler(sql, deliveries.front());
  };
  std::vector<Message> messages{order};
  Result result;
  SUBCASE("one message") { result = consumer.consume(order, handler); }
  SUBCASE("a batch") { result = consumer.consume_batch(messages, handler).back(); }
  SUBCASE("a handler for a batch") { result = consumer.consume_batch(messages, at_once).back(); }
  SUBCASE("a batch with savepoints") {
    messages.insert(messages.begin(), {.business_key = "bad"});
    result = consumer.consume_batch(messages, handler, OnFailure::skip).back();
  }
  CHECK(result.outcome == Outcome::consumed);
  CHECK(runs == 2);
  CHECK(db.effects() == 1);
  CHECK(db.number("select count(*) from txinbox_failed_message where business_key = 'order123'") == 0);
}

TEST_CASE("a connection that was killed while idle is replaced without an error" * doctest::skip(!has_server())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume({.business_key = "warm"}, add_effect).outcome == Outcome::consumed);
  {
    auto connection = pool.acquire();
    kill_connection(connection, db);
  }
  CHECK(consumer
            .consume(order,
                     [](soci::session& sql, Delivery& d) {
                       CHECK(d.attempt() == 1);
                       add_effect(sql, d);
                     })
            .outcome == Outcome::consumed);
}

}  // namespace
}  // namespace txinbox::test
