#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

const Message order{.business_key = "order123", .message_id = "m-1"};

TEST_CASE("a message is consumed once, and no duplicate is") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");

  const Result first = consumer.consume(order, add_effect);
  CHECK(first.outcome == Outcome::consumed);
  CHECK(action_for(first) == Action::acknowledge);
  for (int i = 0; i < 3; ++i) {
    const Result again = consumer.consume({.business_key = "order123", .message_id = "resent"}, add_effect);
    CHECK(again.outcome == Outcome::already_consumed);
    CHECK(action_for(again) == Action::acknowledge);
  }
  CHECK(db.effects() == 1);
}

TEST_CASE("a consumer on a caller's session consumes, and does not change its settings") {
  EffectDatabase db;
  const auto sql = db.session();
  const std::string before = db.settings_of(*sql);
  {
    TxConsumer consumer(*sql, "order-service");
    CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
    CHECK(consumer.consume(order, add_effect).outcome == Outcome::already_consumed);
    CHECK_THROWS_AS((void)consumer.consume({.business_key = "other"},
                                           [](soci::session&, Delivery&) { throw std::runtime_error("no"); }),
                    std::runtime_error);
    CHECK(db.settings_of(*sql) == before);
  }
  CHECK(db.settings_of(*sql) == before);
  CHECK(db.effects() == 1);
}

TEST_CASE("a consumer on a caller's session does not change its autocommit" *
          doctest::skip(!has_autocommit_setting())) {
  EffectDatabase db;
  const auto sql = db.session();
  *sql << "set autocommit = 0";
  TxConsumer consumer(*sql, "order-service");
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::already_consumed);
  long long autocommit = 1;
  *sql << "select @@autocommit", soci::into(autocommit);
  CHECK(autocommit == 0);
  CHECK(db.effects() == 1);
}

TEST_CASE("with autocommit off, the handler's snapshot is not older than its claim" *
          doctest::skip(!has_autocommit_setting())) {
  EffectDatabase db;
  const auto sql = db.session();
  *sql << "set autocommit = 0";
  *sql << "set session transaction isolation level repeatable read";
  const auto other = db.session();
  TxConsumer consumer(*sql, "order-service");
  // The first consume also checks the tables. The handler must see rows that are committed while the claim waits.
  std::unique_ptr<Transaction> holding = std::make_unique<Transaction>(*other);
  CHECK(holding->claim("order-service", order) == Claim::claimed);
  std::thread releaser([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    db.run("insert into effect values ('committed meanwhile')");
    holding.reset();
  });
  long long seen = 0;
  const Result result = consumer.consume(
      order, [&](soci::session& s, Delivery&) { s << "select count(*) from effect", soci::into(seen); });
  releaser.join();
  CHECK(result.outcome == Outcome::consumed);
  CHECK(seen == 1);
}

TEST_CASE("consumers of different names do not share keys") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer orders(pool, "order-service");
  TxConsumer mails(pool, "mail-service");
  CHECK(orders.consume(order, add_effect).outcome == Outcome::consumed);
  CHECK(mails.consume(order, add_effect).outcome == Outcome::consumed);
  CHECK(db.effects() == 2);
}

TEST_CASE("a duplicate key in the handler's own SQL is the handler's error") {
  EffectDatabase db;
  db.run("create table t_order (no varchar(40) not null primary key)");
  db.run("insert into t_order values ('order123')");
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");

  int runs = 0;
  const auto insert = [&](soci::session& sql, Delivery& d) {
    ++runs;
    sql << "insert into t_order values (:no)", soci::use(d.message().business_key);
  };
  CHECK_THROWS_AS((void)consumer.consume(order, insert), soci::soci_error);
  CHECK(runs == 1);  // the error is not transient
  CHECK(db.claims() == 0);
}

TEST_CASE("later duplicates get every byte of the result that the handler stored") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte += static_cast<char>(i);

  for (const std::string& result : {std::string("receipt 7"), std::string(), every_byte, std::string(65'535, 'x')}) {
    const Message message{.business_key = "k" + std::to_string(result.size())};
    const Result first = consumer.consume(message, [&](soci::session&, Delivery& d) {
      d.store("overwritten");
      d.store(result);
    });
    CHECK(first.stored == result);
    CHECK(consumer.consume(message, add_effect).stored == result);
  }
  CHECK(consumer.consume({.business_key = "without"}, add_effect).stored == std::nullopt);
  CHECK(consumer.consume({.business_key = "without"}, add_effect).stored == std::nullopt);
}

TEST_CASE("a result may have one mebibyte, alone, in a batch and under a lease") {
  EffectDatabase db;
  Pool pool = db.pool();
  constexpr std::size_t mebibyte = 1024UL * 1024;
  const std::string large(mebibyte, '\xff');
  TxConsumer consumer(pool, "order-service", {.max_result = mebibyte});
  const auto handler = [&](soci::session&, Delivery& d) { d.store(large); };
  CHECK(consumer.consume({.business_key = "alone"}, handler).stored == large);
  CHECK(consumer.consume({.business_key = "alone"}, add_effect).stored == large);
  const std::vector<Message> batch = {{.business_key = "1"}, {.business_key = "2"}, {.business_key = "3"}};
  (void)consumer.consume_batch(batch, handler);
  for (const Result& each : consumer.consume_batch(batch, add_effect)) CHECK(each.stored == large);
  LeaseConsumer leases(pool, "leases", {}, {.max_result = mebibyte});
  CHECK(leases.consume(order, [&](Lease& lease) { lease.delivery().store(large); }).stored == large);
  CHECK(leases.consume(order, [](Lease&) { FAIL("the handler of a duplicate ran"); }).stored == large);
}

TEST_CASE("consume on a session that is inside a transaction is refused, and does not end this transaction") {
  EffectDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "order-service");
  CHECK(consumer.consume({.business_key = "first"}, add_effect).outcome == Outcome::consumed);
  sql->begin();
  *sql << "insert into effect values ('mine')";
  ErrorCode code{};
  try {
    (void)consumer.consume(order, add_effect);
  } catch (const Error& e) {
    code = e.code();
  }
  CHECK(code == ErrorCode::transaction_open);
  sql->commit();
  CHECK(db.effects() == 2);
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
}

TEST_CASE("each state of a row has its outcome, and a message with an unknown state is delivered again") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  (void)consumer.consume(order, add_effect);
  const auto with_state = [&](const std::string& state) {
    db.run("update txinbox_consumed_message set state = '" + state + "'");
    return consumer.consume(order, add_effect);
  };
  CHECK(with_state("parked").outcome == Outcome::parked);
  CHECK(with_state("torn").outcome == Outcome::parked);
  const Result leased = with_state("consuming");
  CHECK(leased.outcome == Outcome::in_progress);
  CHECK(action_for(leased) == Action::redeliver);
  try {
    (void)with_state("surprise");
    FAIL("nothing was thrown");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::unknown_state);
    CHECK(action_for(std::current_exception()) == Action::redeliver);
  }
  CHECK(db.effects() == 1);
}

TEST_CASE("the result has the remaining time of a lease as the time of the next delivery") {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service");
  (void)consumer.consume(order, add_effect);
  const std::string in_a_minute = on_sqlite3() ? "strftime('%Y-%m-%d %H:%M:%f', 'now', '+60 seconds')"
                                  : on_mysql() ? "utc_timestamp(6) + interval 60 second"
                                               : "clock_timestamp() + interval '60 seconds'";
  db.run("update txinbox_consumed_message set state = 'consuming', lease_expires_at = " + in_a_minute);
  const Result leased = consumer.consume(order, add_effect);
  CHECK(leased.outcome == Outcome::in_progress);
  CHECK(leased.retry_after > std::chrono::seconds(5));
  CHECK(leased.retry_after <= std::chrono::seconds(60));
}

}  // namespace
}  // namespace txinbox::test
