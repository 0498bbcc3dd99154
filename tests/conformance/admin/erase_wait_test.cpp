// Erasing messages whose claims wait for another transaction.

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "message/erased_key.hpp"
#include "support/capabilities.hpp"
#include "support/sql_time.hpp"
#include "support/test_database.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

// The claims wait for 21 s for a transaction that holds the keys. Meanwhile, another process erases the messages.
TEST_CASE("a claim that has waited for long does not run a message that was erased meanwhile" *
          doctest::test_suite("timed")) {
  const TestDatabase db;
  const std::vector<std::string> keys{"single", "batch 1", "batch 2", "savepoint", "lease"};
  auto holder = db.session();
  soci::transaction holding(*holder);
  const std::string insert =
      "insert into txinbox_consumed_message (consumer, business_key, state, attempt_token, "
      "consumed_at) values ('svc', '";
  const std::string rest =
      std::string("', 'consumed', ") + (on_postgresql() ? "gen_random_uuid()" : "x'00'") + ", " + sql_time(0s) + ")";
  Pool pool = open_pool(db.url(), {.connections = 5, .lock_timeout = 60s, .statement_timeout = 60s});
  TxConsumer consumer(pool, "svc");
  const auto nothing = [](soci::session&, Delivery&) {};
  CHECK(consumer.consume({.business_key = "first"}, nothing).outcome == Outcome::consumed);
  LeaseConsumer leases(pool, "svc");
  CHECK(leases.consume({.business_key = "second"}, [](Lease&) {}).outcome == Outcome::consumed);

  for (const std::string& each : keys) *holder << insert + each + rest;
  std::atomic<int> ran = 0;
  const auto run = [&](soci::session&, Delivery&) { ++ran; };
  std::vector<std::future<Outcome>> outcomes;
  const auto start = [&](auto work) { outcomes.push_back(std::async(std::launch::async, work)); };
  start([&] { return consumer.consume({.business_key = "single"}, run).outcome; });
  start([&] {
    const std::vector<Message> batch{{.business_key = "batch 1"}, {.business_key = "batch 2"}};
    const auto results = consumer.consume_batch(batch, run);
    return results[0].outcome == results[1].outcome ? results[0].outcome : Outcome::not_run;
  });
  start([&] {  // the first message makes the batch run again with savepoints
    const std::vector<Message> batch{{.business_key = "refused"}, {.business_key = "savepoint"}};
    const auto results = consumer.consume_batch(
        batch,
        [&](soci::session&, Delivery& delivery) {
          if (delivery.message().business_key == "refused") throw std::invalid_argument("refused");
          ++ran;
        },
        OnFailure::skip);
    return results[1].outcome;
  });
  start([&] { return leases.consume({.business_key = "lease"}, [&](Lease&) { ++ran; }).outcome; });
  std::this_thread::sleep_for(21s);
  *holder << "delete from txinbox_consumed_message where consumer = 'svc' and business_key not in ('first', 'second')";
  for (const std::string& each : keys) *holder << insert + detail::erased_key("svc", each) + rest;
  holding.commit();
  for (auto& each : outcomes) CHECK(each.get() == Outcome::already_consumed);
  CHECK(ran == 0);
  CHECK(db.number("select count(*) from txinbox_consumed_message where business_key in ('single', 'batch 1', "
                  "'batch 2', 'savepoint', 'lease')") == 0);
}

// On MariaDB and MySQL, the snapshot of the transaction hides the erased key. On PostgreSQL it does so at REPEATABLE
// READ, which is refused.
TEST_CASE("a claim of a Transaction that began long ago does not run a message that was erased meanwhile" *
          doctest::test_suite("timed") * doctest::skip(one_writer())) {
  const TestDatabase db;
  const auto take_snapshot = [](soci::session& sql) {
    long long rows = 0;
    sql << "select count(*) from txinbox_consumed_message", soci::into(rows);
  };
  const auto sql = db.session();
  Transaction transaction(*sql);
  take_snapshot(*sql);
  const auto strict = db.session();
  if (on_postgresql()) *strict << "set default_transaction_isolation = 'repeatable read'";
  Transaction strict_transaction(*strict);
  take_snapshot(*strict);
  std::this_thread::sleep_for(21s);
  db.run(
      "insert into txinbox_consumed_message (consumer, business_key, state, attempt_token, consumed_at) values "
      "('svc', '" +
      detail::erased_key("svc", "order") + "', 'consumed', " + (on_postgresql() ? "gen_random_uuid()" : "x'00'") +
      ", " + sql_time(0s) + ")");
  CHECK(transaction.claim("svc", {.business_key = "order"}) == Claim::already_consumed);
  CHECK(transaction.claim("svc", {.business_key = "another"}) == Claim::claimed);
  transaction.commit();
  if (on_postgresql()) {
    CHECK(thrown_by([&] { (void)strict_transaction.claim("svc", {.business_key = "order"}); }) == "transaction_lost");
    CHECK(thrown_by([&] { strict_transaction.commit(); }) == "transaction_lost");
  }
  CHECK(db.number("select count(*) from txinbox_consumed_message where business_key = 'order'") == 0);
}

}  // namespace
}  // namespace txinbox::test
