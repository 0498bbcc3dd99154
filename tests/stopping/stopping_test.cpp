// A service that gets SIGTERM under load.

#include <chrono>
#include <csignal>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>

#include "support/command.hpp"
#include "support/effects.hpp"
#include "support/old_rows.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {
namespace {

/// Old rows for the service's purger: more than it can remove before it is stopped.
constexpr int old_rows = 5'000;

using Keys = std::multiset<std::string>;

/// The lines that the service printed: for each kind of line, the text after the kind.
class Told {
 public:
  explicit Told(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const auto space = line.find(' ');
      lines_[line.substr(0, space)].insert(space == std::string::npos ? "" : line.substr(space + 1));
    }
  }

  const Keys& all(const std::string& kind) { return lines_[kind]; }

  /// Returns the REST of all lines "KIND NAME REST", without duplicates.
  std::set<std::string> of(const std::string& kind, const std::string& name) {
    std::set<std::string> found;
    for (const std::string& each : lines_[kind]) {
      if (each.starts_with(name + " ")) found.insert(each.substr(name.size() + 1));
    }
    return found;
  }

 private:
  std::map<std::string, Keys> lines_;
};

std::set<std::string> texts(const TestDatabase& db, const std::string& query) {
  const auto sql = db.session();
  const soci::rowset<std::string> rows = sql->prepare << query;
  return {rows.begin(), rows.end()};
}

std::string key_column() { return on_mysql() ? "cast(business_key as char)" : "business_key"; }

std::set<std::string> keys_where(const TestDatabase& db, const std::string& condition) {
  return texts(db, "select " + key_column() + " from txinbox_consumed_message where " + condition);
}

std::set<std::string> consumed_keys(const TestDatabase& db, const std::string& consumer) {
  return keys_where(db, "state = 'consumed' and consumer = '" + consumer + "'");
}

/// Another service holds the key "held" for hours.
void hold_a_lease(const TestDatabase& db) {
  db.run(
      "insert into txinbox_consumed_message (consumer, business_key, state, attempt_token, consumed_at, lease_fence, "
      "lease_expires_at) values ('waiting', 'held', 'consuming', " +
      here<std::string>("x'00112233445566778899aabbccddeeff', strftime('%Y-%m-%d %H:%M:%f', 'now'), 1, "
                        "strftime('%Y-%m-%d %H:%M:%f', 'now', '+5 hours'))",
                        "x'00112233445566778899aabbccddeeff', utc_timestamp(6), 1, utc_timestamp(6) + interval 5 hour)",
                        "gen_random_uuid(), clock_timestamp(), 1, clock_timestamp() + interval '5 hours')"));
}

void check_ended_cleanly(const EffectDatabase& db, const Ended& ended) {
  CHECK_MESSAGE(ended.status == 0, ended.err);
  CHECK(ended.last_line() == "ended");
  Told told(ended.out);
  for (const std::string& each : told.all("failed")) FAIL_CHECK(each);

  // The keys that the service acknowledged are consumed, and each of them took effect once.
  for (const std::string consumer : {"single", "batch", "lease"}) {
    CAPTURE(consumer);
    CHECK(!told.of("ack", consumer).empty());
    CHECK(told.of("ack", consumer) == consumed_keys(db, consumer));
    CHECK(told.of("late", consumer) == std::set<std::string>{"stopped"});
    // In each thread, at most the message that was running.
    const int in_hand = consumer == "batch" ? 20 : 1;
    for (const std::string& late : told.of("late_handlers", consumer)) CHECK(std::stoi(late) <= in_hand);
  }
  for (const std::string consumer : {"single", "batch"}) {
    std::set<std::string> effects;
    for (const std::string& key : told.of("ack", consumer)) effects.insert(consumer + " " + key);
    CHECK(effects == texts(db, std::string("select ") + (on_mysql() ? "cast(id as char)" : "id") +
                                   " from effect where id like '" + consumer + " %'"));
  }
  CHECK(db.number("select count(*) from effect") == db.number("select count(distinct id) from effect"));
  const auto leased = told.of("ack", "lease");
  CHECK(told.all("effect") == Keys(leased.begin(), leased.end()));

  // The service released the leases of messages that are not consumed. So their redelivery runs at once.
  const Keys& given_back = told.all("given_back");
  const std::string is_open = "state <> 'consumed' and business_key <> 'held'";
  CHECK(keys_where(db, is_open) == std::set<std::string>(given_back.begin(), given_back.end()));
  CHECK(keys_where(db, is_open + " and lease_owner is not null").empty());
  CHECK(db.number("select count(*) from txinbox_consumed_message where business_key = 'late'") == 0);
  // The purger has recorded how many rows it removed, also for the purge that was stopped.
  const long long left = db.number("select count(*) from txinbox_consumed_message where consumer = 'old'");
  CHECK(left < old_rows);
  CHECK(db.number("select purged from txinbox_consumer where consumer = 'old'") == old_rows - left);
  CHECK(db.number("select count(*) from txinbox_failed_message where attempts > 0") == 0);
  CHECK(told.all("waited").count("lease in_progress") == 1);
  CHECK(told.of("waited", "retry").size() == 1);
  CHECK(told.of("waited", "connection").size() == 1);
  CHECK(db.number(
            "select count(*) from txinbox_consumed_message where business_key = 'held' and state = 'consuming'") == 1);
}

TEST_CASE("a service that gets SIGTERM under load ends by itself, and has acknowledged exactly the consumed messages") {
  constexpr int last_round = 5;
  for (int round = 0; round <= last_round; ++round) {
    CAPTURE(round);
    const OldRows db;
    hold_a_lease(db);
    db.add_at_once("old", old_rows, std::chrono::hours(2));
    Command service({}, db.url());
    REQUIRE(service.printed("ack single 20\n"));
    REQUIRE(service.printed("ack batch 40\n"));
    REQUIRE(service.printed("ack lease 9\n"));
    REQUIRE(service.printed("purged\n"));
    // In the last round, the service is stopped while a message runs whose handler will throw when it sees the stop.
    if (round == last_round) REQUIRE(service.printed("leased 24\n"));
    std::this_thread::sleep_for(std::chrono::milliseconds(7 * round));
    service.signal(SIGTERM);
    const Ended ended = service.wait();
    check_ended_cleanly(db, ended);
    if (round == last_round) CHECK(Told(ended.out).all("given_back").contains("24"));
  }
}

}  // namespace
}  // namespace txinbox::test
