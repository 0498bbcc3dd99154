#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "support/command.hpp"
#include "support/test_database.hpp"
#include "torture/bad_deployment.hpp"
#include "torture/plan.hpp"
#include "torture/storm_kit.hpp"

using namespace txinbox::test;
using namespace txinbox::torture;

namespace {

long long failed_rows(const TestDatabase& db) { return db.number("select count(*) from txinbox_failed_message"); }
long long outbox_rows(const TestDatabase& db) { return db.number("select count(*) from txinbox_outbox_message"); }

/// The keys whose copies all become dead letters, and whose dead letters the broker all refuses at first.
std::set<std::string> keys_that_are_lost() {
  std::set<std::string> keys;
  for (std::uint64_t i = 0; i < key_count; ++i) {
    if (!fails_until_repair(seed, i) || keeps_payload(seed, i) || !is_refused_at_first(seed, i)) continue;
    keys.insert(Plan::business_key(i));
  }
  return keys;
}

}  // namespace

TEST_CASE("a storm on redrive balances with killed operators, and leaves nothing behind") {
  const TestDatabase db;
  const Ended ended = run({"--kind", "redrive", "--duration", "6s", "--kill-every", "150ms", "--json"}, db.url());
  CAPTURE(ended.err);
  CAPTURE(ended.out);
  REQUIRE(ended.status == 0);
  const auto report = nlohmann::json::parse(ended.out);
  CHECK(report.at("effects") == report.at("keys"));
  CHECK(report.at("unexpected_failures") == 0);
  CHECK(report.at("dead_letters") > 20);
  CHECK(report.at("redriven") == report.at("dead_letters"));
  CHECK(report.at("redriven_payloads") > 0);
  CHECK(report.at("repairs") > 0);
  CHECK(report.at("operators_killed") > 0);
  CHECK(report.at("workers_killed") > 0);
  CHECK(tables_left(db) == 0);
  CHECK(rows_left(db) == 0);
  CHECK(failed_rows(db) == 0);
  CHECK(outbox_rows(db) == 0);
}

TEST_CASE("without kills, each dead letter of a schedule is published again once") {
  const TestDatabase db;
  const Ended ended = run(schedule({"--kill-every", "0s", "--kind", "redrive"}), db.url());
  CAPTURE(ended.err);
  CAPTURE(ended.out);
  REQUIRE(ended.status == 0);
  const auto report = nlohmann::json::parse(ended.out);
  CHECK(report.at("keys") == key_count);
  CHECK(report.at("repairs") == 1);
  CHECK(report.at("redriven") == report.at("dead_letters"));
  CHECK(report.at("redriven_again") == 0);
  CHECK(report.at("redrives_refused") > 0);
}

TEST_CASE("operators that acknowledge dead letters before they are published again are detected") {
  const TestDatabase db;
  const Ended ended = run(schedule({"--kill-every", "0s", "--break", "early"}), db.url());
  CAPTURE(ended.err);
  CAPTURE(ended.out);
  REQUIRE(ended.status == 1);
  const auto report = nlohmann::json::parse(ended.out);
  REQUIRE(keys_that_are_lost().size() == 3);
  std::set<std::string> lost;
  for (const auto& each : report.at("imbalances")) {
    if (each.at("what") == "effects" && each.at("found") == "0") lost.insert(each.at("subject"));
  }
  CHECK(std::ranges::includes(lost, keys_that_are_lost()));
  CHECK(count(report, "a dead letter was acknowledged and not published", "dead letter") > 0);
  CHECK(run({"--remove-leftovers"}, db.url()).status == 0);
  CHECK(tables_left(db) == 0);
  CHECK(failed_rows(db) == 0);
}

TEST_CASE("a storm on redrive refuses an outbox that a service uses") {
  const TestDatabase db;
  db.run(
      "insert into txinbox_outbox_message (id, aggregatetype, aggregateid, type, payload, part, created_at) values "
      "('00000000-0000-4000-8000-000000000001', 'orders', '', '', x'00', 0, '2026-01-01 00:00:00.000000')");
  const Ended refused = run({"--kind", "redrive", "--keys", "10"}, db.url());
  CHECK(refused.status == 3);
  CHECK(refused.err.find("in use") != std::string::npos);
  CHECK(outbox_rows(db) == 1);
}
