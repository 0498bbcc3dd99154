// The purges of failed and of conflicting messages.

#include <chrono>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/old_rows.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a purge removes old failures, and keeps young ones") {
  const OldRows db;
  db.add_failed("a", 120, 25h);
  db.add_failed("b", 3, 25h);
  db.add_failed("a", 4, 1h);
  CHECK(purge(*db.session(), 24h, {.what = Purgeable::failed, .consumer = "a", .batch_size = 10}) == 120);
  CHECK(db.number("select count(*) from txinbox_failed_message") == 7);
  CHECK(purge(*db.session(), 24h, {.what = Purgeable::failed}) == 3);
}

TEST_CASE(
    "a purge keeps the failures of parked and torn messages, and removes the failures of messages in other states") {
  const OldRows db;
  db.add_failed("svc", 6, 25h);
  const char* states[] = {"parked", "torn", "consumed", "consuming", "discarded"};
  for (int i = 0; i < 5; ++i) {
    db.add("svc", 1, 25h, states[i]);
    const std::string is = std::to_string(i);
    db.run("update txinbox_consumed_message set business_key = 'f" + is + "' where state = '" + states[i] + "'");
  }
  CHECK(purge(*db.session(), 24h, {.what = Purgeable::failed}) == 4);
  CHECK(db.text("select min(business_key) from txinbox_failed_message") == "f0");
  CHECK(db.text("select max(business_key) from txinbox_failed_message") == "f1");
  db.run("delete from txinbox_consumed_message");
  CHECK(purge(*db.session(), 24h, {.what = Purgeable::failed}) == 2);
}

TEST_CASE("a purge removes a failure even if another consumer has parked the same key") {
  const OldRows db;
  db.add_failed("svc", 1, 25h);
  db.add("other", 1, 25h, "parked");
  db.run("update txinbox_consumed_message set business_key = 'f0'");
  CHECK(purge(*db.session(), 24h, {.what = Purgeable::failed}) == 1);
}

TEST_CASE("a purge removes old markers of attempts that never ended") {
  const OldRows db;
  db.add_failed("svc", 3, 25h);
  db.run("update txinbox_failed_message set first_failed_at = null, last_failed_at = null, running_since = " +
         OldRows::ago(25h) + " where business_key <> 'f2'");
  db.run("update txinbox_failed_message set running_since = " + OldRows::ago(1h) + " where business_key = 'f1'");
  CHECK(purge(*db.session(), 24h, {.what = Purgeable::failed}) == 2);
  CHECK(db.text("select business_key from txinbox_failed_message") == "f1");
}

TEST_CASE("a purge removes conflicts whose last delivery is old") {
  const OldRows db;
  db.add_conflicts("a", 120, 25h);
  db.add_conflicts("b", 3, 25h);
  db.run("update txinbox_conflicting_message set last_at = " + OldRows::ago(1h) +
         " where consumer = 'a' and business_key = 'f7'");
  CHECK(purge(*db.session(), 24h, {.what = Purgeable::conflicts, .consumer = "a", .batch_size = 10}) == 119);
  CHECK(purge(*db.session(), 24h, {.what = Purgeable::conflicts}) == 3);
  CHECK(db.text("select business_key from txinbox_conflicting_message") == "f7");
}

TEST_CASE("a purge counts two contents of one key as two rows") {
  const OldRows db;
  db.add_conflicts("svc", 2, 25h);
  db.run("update txinbox_conflicting_message set business_key = 'same'");
  CHECK(purge(*db.session(), 24h, {.what = Purgeable::conflicts, .max_rows = 1}) == 1);
  CHECK(db.number("select count(*) from txinbox_conflicting_message") == 1);
}

TEST_CASE("a purge of failures and conflicts changes neither consumed messages nor their purge record") {
  const OldRows db;
  db.add("svc", 3, 25h);
  CHECK(purge(*db.session(), 24h, {.what = Purgeable::failed}) == 0);
  CHECK(purge(*db.session(), 24h, {.what = Purgeable::conflicts}) == 0);
  CHECK(db.claims() == 3);
  CHECK(db.number("select count(*) from txinbox_consumer") == 0);
}

}  // namespace
}  // namespace txinbox::test
