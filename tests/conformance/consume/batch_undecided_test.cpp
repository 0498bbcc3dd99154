// Claims of a batch that a handler's own COMMIT has made visible, before txinbox has deleted them or marked them torn
// for good. Other deliveries of these messages get `in_progress`.

#include <chrono>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/eventually.hpp"
#include "support/guard_cases.hpp"
#include "support/memory_broker.hpp"
#include "support/outcomes.hpp"
#include "support/run_kit.hpp"
#include "support/sql_time.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

const auto batch = messages_of({"d", "a", "tears", "e", "b"});
constexpr Outcome in_progress = Outcome::in_progress;

void must_not_run(soci::session&, Delivery&) { FAIL("the handler ran"); }

/// Rows with a lease that no lease consumer has written.
long long undecided(const TestDatabase& db) {
  return db.number("select count(*) from txinbox_consumed_message where lease_expires_at is not null");
}

/// With `takes_over`, the keys have rows that are older than the `valid_for` of the messages.
void deliver_during_tear(OnFailure on_failure, bool takes_over) {
  CAPTURE(takes_over);
  const EffectDatabase db;
  Pool pool = db.pool(1);
  // On SQLite, each delivery elsewhere waits for the turn of the transaction that the handler has ended.
  Pool other_pool = db.pool(PoolOptions{.connections = 1, .lock_timeout = on_sqlite3() ? 10ms : 5s});
  const auto own = db.session();
  TxConsumer consumer = only_pool_refuses_foreign_commit() ? TxConsumer(*own, "svc") : TxConsumer(pool, "svc");
  std::vector<Message> messages = batch;
  if (takes_over) {
    (void)consumer.consume_batch(batch, [](soci::session&, Delivery&) {});
    make_older(db, "1 = 1", 1h);
    for (Message& each : messages) each.valid_for = 60s;
  }
  std::vector<Result> alone;
  std::vector<Result> together;
  const auto deliver_elsewhere = [&] {
    TxConsumer elsewhere(other_pool, "svc");
    for (const Message& each : messages) alone.push_back(elsewhere.consume(each, must_not_run));
    together = elsewhere.consume_batch(messages, must_not_run, on_failure);
  };
  const auto results = consumer.consume_batch(
      messages,
      [&](soci::session& sql, Delivery& d) {
        add_effect(sql, d);
        if (d.message().business_key != "tears") return;
        sql.commit();
        std::thread(deliver_elsewhere).join();
        throw std::runtime_error("thrown after the commit");
      },
      OnFailure::skip);
  CHECK(outcomes(alone) == Outcomes(5, in_progress));
  for (const Result& each : alone) CHECK(each.retry_after == 0ms);
  CHECK(outcomes(together) == (on_failure == OnFailure::skip
                                   ? Outcomes(5, in_progress)
                                   : Outcomes{in_progress, not_run, not_run, not_run, not_run}));
  CHECK(outcomes(results) == Outcomes{failed, failed, failed, consumed, consumed});
  CHECK(undecided(db) == 0);
  TxConsumer later(other_pool, "svc");
  CHECK(outcomes(later.consume_batch(messages, must_not_run, OnFailure::skip)) ==
        Outcomes{parked, parked, parked, duplicate, duplicate});
}

TEST_CASE("until txinbox has removed the claims that a handler has committed, their messages are in progress" *
          doctest::skip(refuses_foreign_commit())) {
  for (const OnFailure on_failure : {OnFailure::stop, OnFailure::skip}) {
    for (const bool takes_over : {false, true}) deliver_during_tear(on_failure, takes_over);
  }
}

/// A consumer whose call could not remove the claims that its handler has committed, because another session has locked
/// the rows.
struct CallWithoutEnd {
  EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 1, .lock_timeout = 1s});
  std::unique_ptr<soci::session> own = db.session();
  std::unique_ptr<soci::session> other = db.session();
  std::stop_source stop;
  TxConsumer consumer = make_consumer(stop.get_token());

  CallWithoutEnd() {
    if (on_sqlite3()) *own << "pragma busy_timeout = 10";
    const auto results = consumer.consume_batch(batch, [&](soci::session& sql, Delivery& d) {
      add_effect(sql, d);
      if (d.message().business_key != "tears") return;
      sql.commit();
      other->begin();
      *other << "update txinbox_consumed_message set message_id = 'locked'";
      throw std::runtime_error("thrown after the commit");
    });
    CHECK(results[0].outcome == failed);
  }

  TxConsumer make_consumer(std::stop_token its_stop) {
    const ConsumerOptions options{.retry = {.max_runs = 1}, .stop = std::move(its_stop)};
    return only_pool_refuses_foreign_commit() ? TxConsumer(*own, "svc", options) : TxConsumer(pool, "svc", options);
  }

  void check_messages() {
    CHECK(undecided(db) == 0);
    TxConsumer next = make_consumer({});
    CHECK(outcomes(next.consume_batch(batch, add_effect, OnFailure::skip)) ==
          Outcomes{parked, parked, parked, consumed, consumed});
  }
};

TEST_CASE("if a call cannot remove the claims that its handler has committed, the next call of the consumer does" *
          doctest::skip(refuses_foreign_commit())) {
  CallWithoutEnd call;
  call.other->rollback();
  CHECK(undecided(call.db) == 5);
  CHECK(call.consumer.consume({.business_key = "another"}, add_effect).outcome == consumed);
  call.check_messages();
}

// The claims' lease ends after a minute, and the broker may have no message for this service until then.
TEST_CASE("if there is no next call, a worker of run without a job removes the claims" *
          doctest::skip(refuses_foreign_commit())) {
  CallWithoutEnd call;
  MemoryBroker broker;
  MemorySource source(broker);
  std::jthread watch([&] {
    std::this_thread::sleep_for(1500ms);  // the worker tries it while the rows are locked
    call.other->rollback();
    CHECK(eventually([&] { return undecided(call.db) == 0; }));
    call.stop.request_stop();
  });
  (void)run(source, call.consumer, body_is_key, must_not_run);
  watch.join();
  call.check_messages();
}

TEST_CASE("the end of run removes the claims that a handler has committed" * doctest::skip(refuses_foreign_commit())) {
  CallWithoutEnd call;
  call.other->rollback();
  MemoryBroker broker;
  MemorySource source(broker);
  (void)run(source, call.consumer, body_is_key, must_not_run, {.idle_exit = 0ms});
  call.check_messages();
}

TEST_CASE("a torn claim whose lease has ended is parked, and one whose lease has not ended is in progress") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume({.business_key = "a"}, add_effect).outcome == consumed);
  const auto ends = [&](std::chrono::seconds from_now) {
    db.run("update txinbox_consumed_message set state = 'torn', lease_expires_at = " + sql_time(from_now));
  };
  ends(30s);
  CHECK(consumer.consume({.business_key = "a"}, must_not_run).outcome == in_progress);
  CHECK(LeaseConsumer(pool, "svc").consume({.business_key = "a"}, [](Lease&) { FAIL("ran"); }).outcome == in_progress);
  CHECK(consumer.consume({.business_key = "a", .content = "other"}, must_not_run).outcome == in_progress);
  ends(-1s);
  CHECK(consumer.consume({.business_key = "a"}, must_not_run).outcome == parked);
  CHECK(LeaseConsumer(pool, "svc").consume({.business_key = "a"}, [](Lease&) { FAIL("ran"); }).outcome == parked);
}

TEST_CASE("a claim that a batch has confirmed has no lease") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  const auto own = db.session();
  for (const bool pooled : {true, false}) {
    CAPTURE(pooled);
    const std::string at = pooled ? "pool " : "session ";
    TxConsumer consumer = pooled ? TxConsumer(pool, "svc") : TxConsumer(*own, "svc");
    const auto consume = [&](const std::vector<std::string>& keys, auto handler) {
      std::vector<Message> messages;
      for (const std::string& key : keys) messages.push_back({.business_key = at + key});
      for (const Result& each : consumer.consume_batch(messages, handler, OnFailure::skip)) {
        CHECK((each.outcome == consumed || each.outcome == duplicate || each.error != nullptr));
      }
      CHECK(undecided(db) == 0);
    };
    consume({"a"}, add_effect);
    consume({"a", "b"}, add_effect);  // one of them is a duplicate
    consume({"c", "d", "e"}, add_effect);
    consume({"f", "g"}, [](soci::session& sql, Delivery& d) {
      add_effect(sql, d);
      d.store("stored");
    });
    consume({"h", "fails", "i"}, [](soci::session& sql, Delivery& d) {
      add_effect(sql, d);
      if (d.message().business_key.ends_with("fails")) throw std::runtime_error("no");
    });
  }
  CHECK(db.number("select count(*) from txinbox_consumed_message where state = 'consumed'") == 18);
}

}  // namespace
}  // namespace txinbox::test
