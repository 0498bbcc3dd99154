// check_handler: a right handler has no defect, and each wrong one has the defects that it must have.

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
  // Messages 1 to 5, and the second one of the batch.
  CHECK(db.effects() == 6);
  CHECK(db.claims() == 6);
}

TEST_CASE("options that park a message do not park those of the check") {
  const EffectDatabase db;
  HandlerCheck check = check_of(db, add_effect);
  check.options = {.max_attempts = 1, .count_starts = true};
  CHECK(check_handler(check).empty());
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
  // Its key was consumed, so it cannot be consumed again.
  CHECK(error(check_of(db, add_effect)) == "invalid_argument");
  CHECK(error({}) == "invalid_argument");
}

TEST_CASE("the error of a handler that fails is thrown as it is") {
  const EffectDatabase db;
  CHECK_THROWS_AS((void)check_handler(check_of(db, [](soci::session&) { throw std::out_of_range("no such item"); })),
                  std::out_of_range);
}

}  // namespace
}  // namespace txinbox::test
