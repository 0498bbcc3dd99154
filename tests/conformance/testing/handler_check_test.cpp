// check_handler: a right handler has no defect, and each wrong one has the defects that it must have.

#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/handler_check.hpp>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

const std::string twice = "the second delivery of a message has no effects";
const std::string rollback = "a rollback leaves no effects";
const std::string again = "a delivery after a rollback has the same effects";
const std::string two_runs = "a handler that runs twice in one `consume` has the effects of one run";
const std::string kill = "a process that is killed before the commit leaves no effects";
const std::string batch = "in a batch, a message that fails takes nothing from the next one";
const std::string failing_in_batch = "a message that fails in a batch has no effects";
const std::string forked = "the handler also works in a process that was forked";
const std::string same_time = "deliveries at the same time have the effects of one for each message";
const std::string own_transaction = "the handler leaves the transaction to txinbox";

HandlerCheck check_of(const EffectDatabase& db, Handler handler) {
  db.disconnect();  // check_handler forks
  return {.open_pool = [&db] { return db.pool(2); },
          .handler = std::move(handler),
          .message = [](int number) { return Message{.business_key = fmt::format("order{}", number)}; },
          .effects =
              [](soci::session& sql, const Message& message) {
                int rows = 0;
                sql << "select count(*) from effect where id = :id", soci::use(message.business_key), soci::into(rows);
                return fmt::format("{} rows", rows);
              }};
}

std::set<std::string> promises_broken_by(const EffectDatabase& db, Handler handler) {
  std::set<std::string> promises;
  for (const HandlerDefect& each : check_handler(check_of(db, std::move(handler)))) {
    INFO(each.promise, ": ", each.found);
    CHECK_FALSE(each.found.empty());
    CHECK_FALSE(each.remedy.empty());
    promises.insert(each.promise);
  }
  return promises;
}

TEST_CASE("a right handler has no defect") {
  const EffectDatabase db;
  CHECK(promises_broken_by(db, add_effect).empty());
  // Messages 1 to 6, and the second one of the batch.
  CHECK(db.effects() == 7);
  CHECK(db.claims() == 7);
}

TEST_CASE("the options of a service do not change how a check ends") {
  const EffectDatabase db;
  HandlerCheck check = check_of(db, add_effect);
  check.options.retry.max_runs = 1;
  check.options.claim_wait = std::chrono::milliseconds(0);
  check.options.max_attempts = 1;
  check.options.is_transient = [](const std::exception_ptr&) { return true; };
  check.options.count_starts = true;
  check.message = [](int number) {
    return Message{.business_key = fmt::format("order{}", number), .valid_for = std::chrono::milliseconds(1)};
  };
  CHECK(check_handler(check).empty());
}

TEST_CASE("a handler that uses a pool of the test does not work in another process" * doctest::skip(one_writer())) {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  const auto promises = promises_broken_by(db, [&](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    (void)pool.acquire();
  });
  CHECK(promises == std::set{forked});
}

TEST_CASE("a table without transactions keeps what was rolled back" *
          doctest::skip(!on_mysql() || !on_mariadb() || on_galera())) {
  const EffectDatabase db;
  db.run("alter table effect engine = MyISAM");
  const auto promises = promises_broken_by(db, add_effect);
  CHECK(promises.contains(rollback));
  CHECK(promises.contains(failing_in_batch));
}

TEST_CASE("an error of the handler for a later message is a defect, whatever its type") {
  const EffectDatabase db;
  const auto promises = promises_broken_by(db, [](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    if (delivery.message().business_key != "order1") throw 1;  // NOLINT(hicpp-exception-baseclass)
  });
  CHECK(promises == std::set{rollback, two_runs, forked, same_time, batch});
}

TEST_CASE("SQL on another connection stays after a rollback" * doctest::skip(one_writer())) {
  const EffectDatabase db;
  const auto promises = promises_broken_by(db, [&](soci::session&, Delivery& delivery) {
    Pool pool = db.pool(1);
    const auto other = pool.acquire();
    add_effect(*other, delivery);
  });
  CHECK(promises == std::set{rollback, two_runs, kill, failing_in_batch});
}

TEST_CASE("a handler that keeps something from a run that was rolled back") {
  const EffectDatabase db;
  const auto runs = std::make_shared<std::map<std::string, int>>();
  const auto promises = promises_broken_by(db, [runs](soci::session& sql, Delivery& delivery) {
    const int rows = ++(*runs)[delivery.message().business_key];
    for (int i = 0; i < rows; ++i) add_effect(sql, delivery);
  });
  CHECK(promises.contains(again));
  CHECK(promises.contains(two_runs));
  CHECK_FALSE(promises.contains(rollback));
}

TEST_CASE("a handler that ends the transaction") {
  const EffectDatabase db;
  const HandlerCheck check = check_of(db, [](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    sql << "commit";
  });
  const auto defects = check_handler(check);
  REQUIRE(defects.size() == 1);
  CHECK(defects[0].promise == own_transaction);
}

TEST_CASE("a check that could find nothing is refused") {
  const EffectDatabase db;
  const auto error = [](const HandlerCheck& check) { return thrown_by([&] { (void)check_handler(check); }); };
  // A handler whose effects are not read.
  CHECK(error(check_of(db, [](soci::session&) {})) == "invalid_argument");
  // The key of message 1 is consumed now.
  CHECK(error(check_of(db, add_effect)) == "invalid_argument");
  CHECK(error({}) == "invalid_argument");
  // A handler that refuses has no effects.
  const EffectDatabase fresh;
  CHECK(error(check_of(fresh, [](soci::session& sql, Delivery& delivery) {
          add_effect(sql, delivery);
          delivery.refuse("no");
        })) == "invalid_argument");
}

TEST_CASE("messages with one key are refused") {
  const EffectDatabase db;
  HandlerCheck check = check_of(db, add_effect);
  check.message = [](int) { return Message{.business_key = "order1"}; };
  CHECK(thrown_by([&] { (void)check_handler(check); }) == "invalid_argument");
}

TEST_CASE("the error of a handler that fails is thrown as it is") {
  const EffectDatabase db;
  CHECK_THROWS_AS((void)check_handler(check_of(db, [](soci::session&) { throw std::out_of_range("no such item"); })),
                  std::out_of_range);
}

}  // namespace
}  // namespace txinbox::test
