#include <chrono>
#include <csignal>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "support/command.hpp"
#include "support/old_rows.hpp"

using namespace txinbox::test;
using namespace std::chrono_literals;

TEST_CASE("purge removes what is older, says how many, and keeps the rest") {
  const OldRows db;
  db.add("svc", 1'234, 8 * 24h);
  db.add("svc", 5, 6 * 24h);
  const Ended first = run({"purge", "--older-than", "7d"}, db.url());
  CHECK(first.status == 0);
  CHECK(first.out == "purged consumed 1,234\n");
  CHECK(first.err.empty());
  CHECK(db.claims() == 5);
  const Ended second = run({"purge", "--older-than", "7d"}, db.url());
  CHECK(second.status == 0);
  CHECK(second.out == "purged consumed 0\n");
}

TEST_CASE("purge removes only the rows of the given consumer, and as many as allowed") {
  const OldRows db;
  db.add("a", 30, 48h);
  db.add("b", 30, 48h);
  const auto json = nlohmann::json::parse(
      run({"purge", "--older-than", "24h", "--consumer", "a", "--batch-size", "7", "--max-rows", "20", "--json"},
          db.url())
          .out);
  CHECK(json.at("consumed") == 20);
  CHECK(json.at("stopped") == false);
  CHECK(db.claims_of("a") == 10);
  CHECK(db.claims_of("b") == 30);
}

TEST_CASE("purge --dry-run prints how many rows would be removed, and removes none") {
  const OldRows db;
  db.add("svc", 1'234, 8 * 24h);
  db.add("svc", 3, 8 * 24h, "parked");
  db.add("other", 6, 8 * 24h);
  db.add("svc", 5, 6 * 24h);
  db.add_failed("svc", 4, 48h);
  db.add_conflicts("svc", 5, 48h);
  const auto dry = [&](Command::Arguments more) {
    more.insert(more.begin(), {"purge", "--dry-run"});
    const Ended ended = run(more, db.url());
    CHECK(ended.status == 0);
    CHECK(ended.err.empty());
    return ended.out;
  };
  CHECK(dry({"--older-than", "7d"}) == "would purge consumed 1,240\n");
  CHECK(dry({"--older-than", "7d", "--consumer", "svc"}) == "would purge consumed 1,234\n");
  CHECK(dry({"--older-than", "7d", "--max-rows", "100"}) == "would purge consumed 100\n");
  CHECK(dry({"--older-than", "1h", "--failed", "--conflicts"}) == "would purge failed 4, conflicts 5\n");
  const auto json = nlohmann::json::parse(dry({"--older-than", "7d", "--json"}));
  CHECK(json.at("consumed") == 1'240);
  CHECK(json.at("dry_run") == true);
  CHECK(db.claims() == 1'248);
  CHECK(db.number("select count(*) from txinbox_consumer") == 0);
  CHECK(run({"purge", "--dry-run", "--older-than", "0s"}, db.url()).status == 2);
  // A purge then removes as many rows.
  CHECK(run({"purge", "--older-than", "7d"}, db.url()).out == "purged consumed 1,240\n");
  CHECK(run({"purge", "--older-than", "1h", "--failed", "--conflicts"}, db.url()).out ==
        "purged failed 4, conflicts 5\n");
  CHECK(dry({"--older-than", "7d"}) == "would purge consumed 0\n");
}

TEST_CASE("a purge is recorded for a known consumer, and not for an unknown one") {
  const OldRows db;
  db.add("svc", 3, 1h);
  CHECK(run({"purge", "--older-than", "7d", "--consumer", "scv"}, db.url()).out == "purged consumed 0\n");
  CHECK(db.number("select count(*) from txinbox_consumer") == 0);
  CHECK(run({"purge", "--older-than", "7d", "--consumer", "svc"}, db.url()).out == "purged consumed 0\n");
  CHECK(db.number("select retention from txinbox_consumer where consumer = 'svc'") == 7 * 86'400);
  // The consumer's row says that the consumer exists, even if all its messages are gone.
  CHECK(run({"purge", "--older-than", "1s", "--consumer", "svc"}, db.url()).out == "purged consumed 3\n");
  CHECK(run({"purge", "--older-than", "2d", "--consumer", "svc"}, db.url()).err.empty());
  CHECK(db.number("select retention from txinbox_consumer where consumer = 'svc'") == 2 * 86'400);
}

TEST_CASE("purge --failed and --conflicts keep consumed messages") {
  const OldRows db;
  db.add("svc", 3, 48h);
  db.add_failed("svc", 4, 48h);
  db.add_conflicts("svc", 5, 48h);
  const Ended both = run({"purge", "--older-than", "1h", "--failed", "--conflicts"}, db.url());
  CHECK(both.status == 0);
  CHECK(both.out == "purged failed 4, conflicts 5\n");
  CHECK(db.claims() == 3);
}

TEST_CASE("purge needs an age, and refuses invalid values") {
  const OldRows db;
  db.add("svc", 3, 48h);
  for (const Command::Arguments& arguments : {
           Command::Arguments{"purge"},
           {"purge", "--older-than", ""},
           {"purge", "--older-than", "7"},
           {"purge", "--older-than", "0s"},
           {"purge", "--older-than", "999ms"},
           {"purge", "--older-than", "-7d"},
           {"purge", "--older-than", "100000d"},
           {"purge", "--older-than", "7d", "--batch-size", "0"},
           {"purge", "--older-than", "7d", "--batch-size", "10001"},
           {"purge", "--older-than", "7d", "--max-rows", "0"},
           {"purge", "--older-than", "7d", "--max-time", "0s"},
           {"purge", "--older-than", "7d", "--max-time", "soon"},
           {"purge", "--older-than", "7d", "--consumer", std::string(65, 'c')},
       }) {
    const Ended ended = run(arguments, db.url());
    CAPTURE(ended.err);
    CHECK(ended.out.empty());
    CHECK(ended.err.starts_with("txinbox: "));
    CHECK(ended.status == 2);
  }
  CHECK(db.claims() == 3);
}

TEST_CASE("purge without tables is status 3") {
  const TestDatabase db(TestDatabase::Tables::none);
  CHECK(run({"purge", "--older-than", "7d"}, db.url()).status == 3);
}

TEST_CASE("after a signal, purge finishes its batch and prints what it removed") {
  for (const int signal : {SIGINT, SIGTERM}) {
    const OldRows db;
    db.add("svc", 20'000, 48h);
    Command command({"purge", "--older-than", "24h", "--batch-size", "2", "--json"}, db.url());
    while (db.claims() == 20'000) {
    }
    command.signal(signal);
    const Ended ended = command.wait();
    CHECK(ended.status == 4);
    const auto json = nlohmann::json::parse(ended.out);
    CHECK(json.at("stopped") == true);
    CHECK(json.at("consumed").get<long long>() == 20'000 - db.claims());
    CHECK(db.claims() > 0);
  }
}
