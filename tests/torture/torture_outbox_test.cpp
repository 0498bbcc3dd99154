#include <filesystem>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "support/command.hpp"
#include "support/test_database.hpp"
#include "torture/storm_kit.hpp"

using namespace txinbox::test;

namespace {

/// The file of published messages that a storm has kept.
std::filesystem::path kept_sink(const std::string& err) {
  const std::string begin = "txinbox-torture: /";
  const auto at = err.find(begin);
  if (at == std::string::npos) return {};
  const auto first = at + begin.size() - 1;
  return err.substr(first, err.find(' ', first) - first);
}

}  // namespace

TEST_CASE("a storm on the outbox balances with killed relays, and leaves nothing behind") {
  const TestDatabase db;
  const Ended ended = run({"--kind", "outbox", "--duration", "6s", "--kill-every", "150ms", "--json"}, db.url());
  CAPTURE(ended.err);
  CAPTURE(ended.out);
  REQUIRE(ended.status == 0);
  const auto report = nlohmann::json::parse(ended.out);
  CHECK(report.at("effects") == report.at("keys"));
  CHECK(report.at("messages") > 20);
  CHECK(report.at("published_again") > 0);
  CHECK(report.at("relays_killed") > 0);
  CHECK(report.at("workers_killed") > 0);
  CHECK(tables_left(db) == 0);
  CHECK(rows_left(db) == 0);
  CHECK(db.number("select count(*) from txinbox_outbox_message") == 0);
}

TEST_CASE("a relay that removes messages before they are published is detected") {
  const TestDatabase db;
  const Ended ended = run(schedule({"--kill-every", "0s", "--break", "delete"}), db.url());
  CAPTURE(ended.err);
  CAPTURE(ended.out);
  REQUIRE(ended.status == 1);
  const auto report = nlohmann::json::parse(ended.out);
  CHECK(count(report, "a message was lost", "none") > 0);
  CHECK(count(report, "effects", "") == 0);

  // The file of published messages is kept with the tables.
  CHECK(std::filesystem::remove(kept_sink(ended.err)));
}

TEST_CASE("a relay that ignores the order of a key is detected") {
  const TestDatabase db;
  const Ended ended = run(schedule({"--kill-every", "0s", "--break", "order"}), db.url());
  CAPTURE(ended.err);
  CAPTURE(ended.out);
  REQUIRE(ended.status == 1);
  const auto report = nlohmann::json::parse(ended.out);
  CHECK(count(report, "an older message after a newer one", "change ") > 0);
  CHECK(count(report, "a message was lost", "") == 0);
  CHECK(std::filesystem::remove(kept_sink(ended.err)));
}

TEST_CASE("an outbox that a service uses is refused, and its messages stay") {
  const TestDatabase db;
  db.run(
      "insert into txinbox_outbox_message (id, aggregatetype, aggregateid, type, payload, part, created_at) values "
      "('00000000-0000-4000-8000-000000000001', 'orders', '', '', x'00', 0, '2026-01-01 00:00:00.000000')");
  const Ended refused = run({"--kind", "outbox", "--keys", "10"}, db.url());
  CHECK(refused.status == 3);
  CHECK(refused.err.find("in use") != std::string::npos);
  CHECK(tables_left(db) == 0);
  CHECK(run({"--keys", "10"}, db.url()).status == 0);
  CHECK(db.number("select count(*) from txinbox_outbox_message") == 1);
}
