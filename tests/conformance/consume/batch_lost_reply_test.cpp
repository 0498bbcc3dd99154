// A handler ends its batch's transaction, and a reply is lost afterwards.

#include <chrono>
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
#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

bool acknowledged(const Result& result) { return action_for(result) == Action::acknowledge; }

/// A message that is reported as consumed has its effect exactly once.
void check_acknowledged(const EffectDatabase& db, const std::vector<Message>& messages,
                        const std::vector<Result>& results) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    CAPTURE(messages[i].business_key);
    if (acknowledged(results[i])) CHECK(db.effects_of(messages[i].business_key) == 1);
  }
}

TEST_CASE(
    "a reply that is lost while txinbox resolves the claims of a torn batch causes no loop, and no message is lost" *
    doctest::skip(!has_server())) {
  for (const std::string first : {"m2", "a0"}) {  // sorts after or before m1, which commits
    for (int spared = 0; spared <= 6; ++spared) {
      CAPTURE(first);
      CAPTURE(spared);
      EffectDatabase db;
      Proxy proxy(db.url());
      Pool pool = open_pool(proxy.url(), {.connections = 1});
      TxConsumer consumer(pool, "svc", {.retry = {.initial_backoff = std::chrono::milliseconds(1)}});
      const auto messages = messages_of({"m1", first, "m3"});
      bool tear = true;
      const auto results = consumer.consume_batch(messages, [&](soci::session& sql, Delivery& d) {
        add_effect(sql, d);
        if (!tear || d.message().business_key != "m1") return;
        tear = false;
        if (refuses_foreign_commit()) proxy.lose_reply(spared);
        sql << "commit";
        proxy.lose_reply(spared);
      });
      check_acknowledged(db, messages, results);
      const auto again = consumer.consume_batch(messages, add_effect, OnFailure::skip);
      check_acknowledged(db, messages, again);
      if (!pool_refuses_foreign_commit()) CHECK_FALSE(acknowledged(again[0]));  // its claim is torn, so it is parked
    }
  }
}

TEST_CASE("a handler that has ended the transaction is detected even if the reply to the commit is lost" *
          doctest::skip(!has_server())) {
  EffectDatabase db;
  Proxy proxy(db.url());
  Pool pool = open_pool(proxy.url(), {.connections = 1});
  TxConsumer consumer(pool, "svc");
  const auto messages = messages_of({"a", "b", "c"});
  int runs = 0;
  const auto results = consumer.consume_batch(messages, [&](soci::session& sql, Delivery& d) {
    ++runs;
    add_effect(sql, d);
    if (runs == 2) {
      sql << "commit";
      if (on_postgresql()) sql << "begin";
      sql << "insert into effect values ('extra')";
    }
    if (runs == 3) proxy.lose_reply();
  });
  CHECK(proxy.lost() == 1);
  if (!pool_refuses_foreign_commit()) CHECK_FALSE(acknowledged(results[1]));
  check_acknowledged(db, messages, results);
  check_acknowledged(db, messages, consumer.consume_batch(messages, add_effect, OnFailure::skip));
}

TEST_CASE("a torn claim is reported once, even if the reply of the server about it is lost" *
          doctest::skip(pool_refuses_foreign_commit())) {
  EffectDatabase db;
  Proxy proxy(db.url());
  Pool pool = open_pool(proxy.url(), {.connections = 1});
  std::vector<std::string> torn;
  TxConsumer consumer(pool, "svc", {.listeners = {on_event([&](const Event& event) {
                                      if (event.type == EventType::torn) torn.emplace_back(event.business_key);
                                    })}});
  const Handler handler = [&](soci::session& sql, Delivery& d) {
    add_effect(sql, d);
    sql << "commit";
    add_effect(sql, d);  // so that the client library reports an open transaction
    proxy.lose_reply();
  };
  CHECK(consumer.consume({.business_key = "single"}, handler).outcome == Outcome::parked);
  CHECK(proxy.lost() == 1);
  CHECK(torn == std::vector<std::string>{"single"});

  const auto results = consumer.consume_batch(messages_of({"a", "a"}), handler, OnFailure::skip);
  CHECK(proxy.lost() == 2);
  for (const Result& each : results) CHECK_FALSE(acknowledged(each));
  CHECK(torn == std::vector<std::string>{"single", "a"});
}

TEST_CASE("a message whose handler commits in its savepoint is reported as torn" * doctest::skip(on_sqlite3())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const Handler handler = [](soci::session& sql, Delivery& d) {
    add_effect(sql, d);
    if (d.message().business_key == "bad") throw std::runtime_error("so that the batch runs with savepoints");
    if (d.message().business_key == "tears") sql << "commit";
  };
  const auto results = consumer.consume_batch(messages_of({"bad", "tears", "c"}), handler, OnFailure::skip);
  CHECK(code_of(results[1].error) == ErrorCode::transaction_lost);
  std::string batch_text;
  std::string single_text;
  try {
    std::rethrow_exception(results[1].error);
  } catch (const Error& e) {
    batch_text = e.what();
  }
  try {
    (void)consumer.consume({.business_key = "tears"}, [](soci::session& sql, Delivery&) { sql << "commit"; });
    (void)consumer.consume({.business_key = "alone"}, [](soci::session& sql, Delivery&) { sql << "commit"; });
  } catch (const Error& e) {
    single_text = e.what();
  }
  CHECK(batch_text == single_text);
  CHECK(results[2].outcome == Outcome::consumed);
}

}  // namespace
}  // namespace txinbox::test
