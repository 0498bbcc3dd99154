#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "support/command.hpp"
#include "support/test_database.hpp"
#include "torture/conduct.hpp"
#include "torture/plan.hpp"
#include "torture/storm_kit.hpp"

using namespace txinbox::test;
using namespace txinbox::torture;

namespace {

/// The value in the report's row with that name.
std::string value_of(const std::string& table, const std::string& name) {
  const auto row = table.find("\n" + name + "  ");
  if (row == std::string::npos) return {};
  const auto value = table.find_first_not_of(' ', row + 1 + name.size());
  return table.substr(value, table.find('\n', value) - value);
}

/// The keys that the stream holds more than once.
std::set<std::string> keys_with_copies() {
  std::set<std::string> keys;
  for (std::uint64_t i = 0; i < key_count; ++i) {
    const KeyPlan key = Plan(seed).key(i);
    if (key.copies > 1) keys.insert(key.business_key);
  }
  return keys;
}

/// The keys whose handlers all throw when a copy is delivered for the first time.
std::set<std::string> keys_that_fail() {
  std::set<std::string> keys;
  for (std::uint64_t i = 0; i < key_count; ++i) {
    const KeyPlan key = Plan(seed).key(i);
    bool fails = true;
    for (unsigned copy = 0; copy < static_cast<unsigned>(key.copies); ++copy) {
      const Conduct conduct = conduct_of(seed, {.key = i, .copy = copy}, key.is_hot, 1);
      fails = fails && (conduct == Conduct::throws_first || conduct == Conduct::throws_last);
    }
    if (fails) keys.insert(key.business_key);
  }
  return keys;
}

/// The keys with an imbalance of this kind for which `is_it` accepts the value.
template <class Condition>
std::set<std::string> keys_found(const nlohmann::json& report, const std::string& what, const Condition& is_it) {
  std::set<std::string> keys;
  for (const auto& each : report.at("imbalances")) {
    if (each.at("what") == what && is_it(each.at("found").get<std::string>())) keys.insert(each.at("subject"));
  }
  return keys;
}

bool includes(const std::set<std::string>& all, const std::set<std::string>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

}  // namespace

TEST_CASE("a storm with killed workers balances, and leaves nothing behind") {
  const TestDatabase db;
  db.run(
      "insert into txinbox_consumed_message (consumer, business_key, state, attempt_token) "
      "values ('someone-else', 'order-0', 'consumed', x'00')");
  const Ended ended = run({"--duration", "4s", "--kill-every", "100ms", "--seed", "7", "--json"}, db.url());
  CAPTURE(ended.err);
  CAPTURE(ended.out);
  REQUIRE(ended.status == 0);
  CHECK(ended.err.starts_with("seed 7\n"));
  const auto report = nlohmann::json::parse(ended.out);
  CHECK(report.at("balances") == true);
  CHECK(report.at("seed") == 7);
  CHECK(report.at("keys") > 20);
  CHECK(report.at("effects") == report.at("keys"));
  CHECK(report.at("deliveries") > report.at("acknowledged"));
  CHECK(report.at("duplicates") > 0);
  CHECK(report.at("handler_failures") > 0);
  CHECK(report.at("workers_killed") > 0);
  CHECK(tables_left(db) == 0);
  CHECK(rows_left(db) == 1);
}

TEST_CASE("a consumer that does not claim its keys is detected, and the tables are kept") {
  const TestDatabase db;
  const Ended ended = run(schedule({"--break", "dedup"}), db.url());
  CAPTURE(ended.err);
  CAPTURE(ended.out);
  REQUIRE(ended.status == 1);
  const auto report = nlohmann::json::parse(ended.out);
  CHECK(report.at("balances") == false);
  const auto doubled = [](const std::string& effects) { return std::stoi(effects) > 1; };
  REQUIRE(keys_with_copies().size() > key_count / 2);
  CHECK(includes(keys_found(report, "effects", doubled), keys_with_copies()));
  CHECK(count(report, "rows in the inbox", "0") == key_count);
  CHECK(count(report, "the balance", "") > 0);
  CHECK(ended.err.find("the evidence is kept") != std::string::npos);

  // The next storm refuses to begin.
  CHECK(tables_left(db) == 3);
  const Ended refused = run({"--duration", "1s"}, db.url());
  CHECK(refused.status == 3);
  CHECK(refused.out.empty());
  CHECK(refused.err.find("--remove-leftovers") != std::string::npos);
  CHECK(tables_left(db) == 3);

  CHECK(run({"--remove-leftovers"}, db.url()).status == 0);
  CHECK(tables_left(db) == 0);
}

TEST_CASE("a consumer that acknowledges before it commits is detected") {
  const TestDatabase db;
  const Ended ended = run(schedule({"--kill-every", "0s", "--break", "acknowledge"}), db.url());
  CAPTURE(ended.err);
  CAPTURE(ended.out);
  REQUIRE(ended.status == 1);
  const auto report = nlohmann::json::parse(ended.out);
  const auto none = [](const std::string& found) { return std::stoi(found) == 0; };
  REQUIRE(keys_that_fail().size() == 3);
  CHECK(includes(keys_found(report, "effects", none), keys_that_fail()));
  CHECK(includes(keys_found(report, "rows in the inbox", none), keys_that_fail()));
  CHECK(run({"--remove-leftovers", "--json"}, db.url()).out.find("rows of the consumer") != std::string::npos);
  CHECK(rows_left(db) == 0);
}

TEST_CASE("a storm under leases balances, and leaves nothing behind") {
  const TestDatabase db;
  const Ended ended = run({"--kind", "lease", "--duration", "6s", "--kill-every", "200ms", "--json"}, db.url());
  CAPTURE(ended.err);
  CAPTURE(ended.out);
  REQUIRE(ended.status == 0);
  const auto report = nlohmann::json::parse(ended.out);
  CHECK(report.at("effects") >= report.at("keys"));
  CHECK(report.at("in_progress") > 0);
  CHECK(report.at("leases_taken_over") > 0);
  CHECK(report.at("workers_killed") > 0);
  CHECK(tables_left(db) == 0);
  CHECK(rows_left(db) == 0);
}

TEST_CASE("handlers that ignore their fence are detected") {
  const TestDatabase db;
  const Ended ended = run(schedule({"--kill-every", "0s", "--break", "fence"}), db.url());
  CAPTURE(ended.err);
  CAPTURE(ended.out);
  REQUIRE(ended.status == 1);
  const auto report = nlohmann::json::parse(ended.out);
  CHECK(count(report, "an older effect after a newer one", "fence ") > 0);
  CHECK(count(report, "effects", "") == 0);
}

TEST_CASE("the report is a table that ends with the verdict") {
  const TestDatabase db;
  const Ended good = run({"--keys", "10"}, db.url());
  CHECK(good.status == 0);
  CHECK(value_of(good.out, "keys") == "10");
  CHECK(good.last_line() == "Everything balances: each key took effect exactly once.");

  const Ended bad = run({"--keys", "10", "--break", "dedup"}, db.url());
  CHECK(bad.status == 1);
  CHECK(bad.out.find("\nKEY OR ACCOUNT ") != std::string::npos);
  CHECK(bad.last_line().starts_with("It does not balance: "));
  CHECK(run({"--remove-leftovers"}, db.url()).status == 0);

  CHECK(value_of(good.out, "leases taken over").empty());
  const Ended leases = run({"--kind", "lease", "--keys", "10"}, db.url());
  CHECK(leases.status == 0);
  CHECK_FALSE(value_of(leases.out, "leases taken over").empty());
  CHECK(leases.last_line().ends_with("in the order of its fences, and was completed once."));

  CHECK(value_of(good.out, "published again").empty());
  const Ended outbox = run({"--kind", "outbox", "--keys", "10"}, db.url());
  CHECK(outbox.status == 0);
  CHECK_FALSE(value_of(outbox.out, "published again").empty());
  CHECK(outbox.last_line().ends_with("and each message was published, in order."));
}

TEST_CASE("rows of the scratch consumer are leftovers too, and other consumers' rows are not") {
  const TestDatabase db;
  db.run(
      "insert into txinbox_consumed_message (consumer, business_key, state, attempt_token) "
      "values ('txinbox-torture', 'a', 'consumed', x'00'), ('txinbox-torture2', 'a', 'consumed', x'00')");
  CHECK(run({"--keys", "10"}, db.url()).status == 3);
  CHECK(run({"--remove-leftovers"}, db.url()).status == 0);
  CHECK(rows_left(db) == 1);
  CHECK(run({"--keys", "10"}, db.url()).status == 0);
}

TEST_CASE("a user's table with the same name is not changed") {
  const TestDatabase db;
  db.run("create table txinbox_torture_ledger (mine integer)");
  CHECK(run({"--keys", "10"}, db.url()).status == 3);
  CHECK(db.number("select count(*) from sqlite_master where type = 'table' and " + tables) == 1);
  CHECK(db.number("select count(mine) from txinbox_torture_ledger") == 0);
}

TEST_CASE("a database without the inbox's tables is refused, and gets none") {
  const TestDatabase db(TestDatabase::Tables::none);
  const Ended ended = run({"--keys", "10"}, db.url());
  CHECK(ended.status == 3);
  CHECK(ended.err.find("txinbox migrate") != std::string::npos);
  CHECK(db.number("select count(*) from sqlite_master") == 0);
}

TEST_CASE("a database file that does not exist is refused, and not created") {
  const auto file = std::filesystem::temp_directory_path() / "txinbox_torture_no_such.db";
  const Ended ended = run({"--db", "sqlite://" + file.string()});
  CHECK(ended.status == 3);
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("SIGINT ends a storm early, and the storm removes its tables and rows") {
  const TestDatabase db;
  Command command({"--duration", "1m"}, db.url());
  REQUIRE(command.printed("seed "));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  command.signal(SIGINT);
  const Ended ended = command.wait();
  CHECK(ended.status == 4);
  CHECK(ended.out.empty());
  CHECK(tables_left(db) == 0);
  CHECK(rows_left(db) == 0);
}

TEST_CASE("workers end with a parent that is killed") {
  const TestDatabase db;
  {
    Command command({"--duration", "1m"}, db.url());
    REQUIRE(command.printed("seed "));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    command.signal(SIGKILL);
    CHECK(command.wait().status == -SIGKILL);  // its output was closed, so no worker has it open
  }
  const Ended cleaned = run({"--remove-leftovers"}, db.url());
  CHECK(cleaned.status == 0);
  CHECK(run({"--keys", "10"}, db.url()).status == 0);
}

TEST_CASE("the command runs as often as asked, and its failures are reported") {
  const TestDatabase db;
  const Ended ended = run({"--duration", "100ms", "--command", "echo ran; exit 3", "--command-every", "50ms",
                           "--command-at-least", "3", "--json"},
                          db.url());
  CAPTURE(ended.err);
  CHECK(ended.status == 0);
  const auto report = nlohmann::json::parse(ended.out);  // the report does not contain the command's output
  CHECK(report.at("commands_run") >= 3);
  CHECK(report.at("commands_failed") == report.at("commands_run"));
  CHECK(ended.err.find("the command ended with status 3") != std::string::npos);
}

TEST_CASE("a database that stays unreachable ends the storm with status 3") {
  const TestDatabase db;
  // This is like a server that is stopped: its tables cannot be reached any more.
  db.run("pragma journal_mode = wal");
  const std::string file = db.url().substr(std::string("sqlite://").size());
  const Ended ended = run({"--duration", "20s", "--grace", "5s", "--command-every", "300ms", "--command",
                           "rm -f " + file + " " + file + "-wal " + file + "-shm; mkdir -p " + file},
                          db.url());
  CAPTURE(ended.err);
  CHECK(ended.status == 3);
  std::filesystem::remove_all(file);
}

TEST_CASE("a wrong command line ends with status 2 before the database is used") {
  const TestDatabase db;
  for (const Command::Arguments& wrong : {Command::Arguments{"--duration", "5"},
                                          {"--duration", "0s"},
                                          {"--keys", "0"},
                                          {"--processes", "0"},
                                          {"--break", "everything"},
                                          {"--kind", "everything"},
                                          {"--kind", "lease", "--break", "dedup"},
                                          {"--relays", "2"},
                                          {"--command-every", "1s"},
                                          {"--command-at-least", "1"},
                                          {"--seed", "x"},
                                          {"extra"},
                                          {"--db", "oracle://h/db"}}) {
    const Ended ended = run(wrong, db.url());
    CAPTURE(wrong.front());
    CHECK(ended.status == 2);
    CHECK(ended.err.starts_with("txinbox-torture: "));
    CHECK(ended.out.empty());
  }
  CHECK(run({}).status == 2);  // no database
  const Ended password = run({"--db", "mysql://u:secret@h/db"});
  CHECK(password.status == 2);
  CHECK(password.err.find("secret") == std::string::npos);
}
