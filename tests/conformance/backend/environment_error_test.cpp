// Errors of the environment: a full disk, no memory, a missing table. They do not count as failures of a message.

#include <functional>
#include <new>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/leases.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

/// The error codes that a test can make the server raise.
std::vector<std::string> codes() {
  if (on_postgresql()) {
    return {"53000", "53100", "53200", "53400", "58000", "58030", "58P01", "XX000", "XX001", "XX002", "42P01", "57000"};
  }
  if (on_mysql())
    return {"1021", "1028", "1030", "1037", "1038", "1041", "1046", "1114", "1146", "1206", "1226", "1878"};
  return {"13"};
}

/// Makes the database raise the error. On SQLite this is a real error, because the file must not grow any more.
void raise_error(soci::session& sql, const std::string& code) {
  if (on_postgresql()) {
    sql << "do $$ begin raise exception 'out of order' using errcode = '" + code + "'; end $$";
  } else if (on_mysql()) {
    sql << "signal sqlstate 'HY000' set mysql_errno = " + code;
  } else {
    sql << "pragma max_page_count = 1";
    sql << "insert into effect values (zeroblob(1000000))";
  }
}

void nothing_is_noted(const EffectDatabase& db) {
  CHECK(db.number("select count(*) from txinbox_failed_message") == 0);
  CHECK(db.claims() == 0);
  CHECK(db.effects() == 0);
}

TEST_CASE("an error of the environment is not counted as a failure, and parks no message") {
  for (const std::string& code : codes()) {
    CAPTURE(code);
    const EffectDatabase db;
    int runs = 0;
    {
      Pool pool = db.pool(1);
      TxConsumer consumer(pool, "svc", {.max_attempts = 1});
      CHECK(thrown_by([&] {
              (void)consumer.consume(order, [&](soci::session& sql, Delivery& delivery) {
                ++runs;
                add_effect(sql, delivery);
                raise_error(sql, code);
              });
            }) == "other");
    }
    CHECK(runs == 1);
    nothing_is_noted(db);
    Pool pool = db.pool(1);
    CHECK(TxConsumer(pool, "svc").consume(order, add_effect).outcome == consumed);
  }
}

TEST_CASE("std::bad_alloc in a handler is not counted as a failure") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  CHECK_THROWS_AS((void)consumer.consume(order, [](soci::session&, Delivery&) { throw std::bad_alloc(); }),
                  std::bad_alloc);
  nothing_is_noted(db);
}

TEST_CASE("an error from a table that was dropped is not counted as a failure" *
          doctest::skip(!missing_table_has_own_code())) {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  CHECK(consumer.consume({.business_key = "first"}, add_effect).outcome == consumed);
  db.run("alter table effect rename to elsewhere");
  CHECK(thrown_by([&] { (void)consumer.consume(order, add_effect); }) == "other");
  CHECK(db.number("select count(*) from txinbox_failed_message") == 0);
  CHECK(db.claims() == 1);
  db.run("alter table elsewhere rename to effect");
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
}

TEST_CASE("under a lease an error of the environment is not counted as a failure, and the lease is released") {
  Leases l;
  LeaseConsumer consumer(l.pool, "svc", {}, {.max_attempts = 1});
  const auto throws = [&](const std::function<void(Lease&)>& handler) {
    CHECK_THROWS((void)consumer.consume(order, handler));
    CHECK(l.db.number("select count(*) from txinbox_failed_message") == 0);
    CHECK(row_state(l.db) == "consuming");
  };
  for (const std::string& code : codes()) {
    CAPTURE(code);
    throws([&](Lease&) { raise_error(*l.db.session(), code); });
  }
  throws([](Lease&) { throw std::bad_alloc(); });
  CHECK(consumer.consume(order, nothing).outcome == consumed);
}

TEST_CASE("a batch ends at an error of the environment, and the messages before it are consumed") {
  for (const OnFailure on_failure : {OnFailure::skip, OnFailure::stop}) {
    for (const bool count_starts : {false, true}) {
      CAPTURE(count_starts);
      const EffectDatabase db;
      Pool pool = db.pool(2);
      TxConsumer consumer(pool, "svc", {.max_attempts = 1, .count_starts = count_starts});
      const auto messages = messages_of({"a", "b", "c", "d", "e"});
      std::string begun;
      const auto results = consumer.consume_batch(
          messages,
          [&](soci::session& sql, Delivery& delivery) {
            begun += delivery.message().business_key;
            add_effect(sql, delivery);
            if (delivery.message().business_key == "c") raise_error(sql, codes().front());
          },
          on_failure);
      CHECK(outcomes(results) == Outcomes{consumed, consumed, failed, not_run, not_run});
      CHECK(action_for(results[2]) == Action::redeliver);
      CHECK(begun.find_first_of("de") == std::string::npos);
      CHECK(db.number("select count(*) from txinbox_failed_message where attempts > 0") == 0);
      CHECK(db.effects() == 2);
      CHECK(db.claims() == 2);
    }
  }
}

TEST_CASE("a batch whose commit fails by an error of the environment counts no failure" *
          doctest::skip(!on_postgresql())) {
  const EffectDatabase db;
  db.run(
      "create function is_full() returns trigger language plpgsql as "
      "'begin raise exception using errcode = ''53100''; end'");
  db.run(
      "create constraint trigger at_commit after insert on effect deferrable initially deferred "
      "for each row execute function is_full()");
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  const auto messages = messages_of({"a", "b", "c", "d"});
  CHECK(outcomes(consumer.consume_batch(messages, add_effect, OnFailure::skip)) ==
        Outcomes{failed, not_run, not_run, not_run});
  nothing_is_noted(db);
}

}  // namespace
}  // namespace txinbox::test
