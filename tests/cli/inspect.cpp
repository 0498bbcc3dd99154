// The tables, and what the inbox contains: migrate, doctor and status.

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <txinbox/schema.hpp>

#include "cli/orders.hpp"
#include "support/sql_time.hpp"

using namespace txinbox::test;

TEST_CASE("migrate prints what it applied, and the next time that the tables are up to date") {
  const TestDatabase db(TestDatabase::Tables::none);
  const auto all = txinbox::migrations(database());
  const std::string newest = std::to_string(all.back().version);
  std::string applied;
  for (const auto& each : all) applied += "applied V" + std::to_string(each.version) + "__" + each.name + "\n";
  const Ended first = run({"migrate"}, db.url());
  CHECK(first.status == 0);
  CHECK(first.out == applied);
  const Ended second = run({"migrate"}, db.url());
  CHECK(second.status == 0);
  CHECK(second.out == "up to date at version " + newest + "\n");
  CHECK((first.err + second.err).empty());
  CHECK(run({"migrate", "--json"}, db.url()).out == "{\"version\":" + newest + ",\"applied\":[]}\n");
}

TEST_CASE("if many processes migrate at once, one of them reports each version as applied") {
  const TestDatabase db(TestDatabase::Tables::none);
  std::vector<std::unique_ptr<Command>> commands;
  for (int i = 0; i < 8; ++i) commands.push_back(std::make_unique<Command>(Command::Arguments{"migrate"}, db.url()));
  std::string all;
  for (const auto& command : commands) {
    const Ended ended = command->wait();
    CAPTURE(ended.err);
    CHECK(ended.status == 0);
    all += ended.out;
  }
  for (const auto& each : txinbox::migrations(database())) {
    const std::string line = "applied V" + std::to_string(each.version) + "__" + each.name + "\n";
    const auto first = all.find(line);
    CHECK(first != std::string::npos);
    CHECK(all.find(line, first + 1) == std::string::npos);
  }
}

TEST_CASE("migrate --info prints what is applied and what is pending, and changes nothing") {
  const TestDatabase db(TestDatabase::Tables::none);
  if (on_sqlite3()) db.run("create table other (a)");  // creates the file
  const auto all = txinbox::migrations(database());
  const Ended before = run({"migrate", "--info"}, db.url());
  CHECK(before.status == 0);
  CHECK(before.out.starts_with("VERSION  NAME        STATE    APPLIED (UTC)\nV1       inbox       pending  -\n"));
  CHECK(before.out.find(" applied ") == std::string::npos);
  CHECK(run({"status"}, db.url()).status == 3);  // still no tables
  run({"migrate"}, db.url());
  const std::string newest = std::to_string(all.back().version);
  db.run("delete from txinbox_schema where version = " + newest);
  db.run("insert into txinbox_schema (version, name, oldest_library, applied_at) values (99, 'of_tomorrow', '0.1.0', " +
         sql_time(std::chrono::hours(0)) + ")");
  const auto json = nlohmann::json::parse(run({"migrate", "--info", "--json"}, db.url()).out);
  REQUIRE(json.size() == all.size() + 1);
  CHECK(json[0].at("version") == 1);
  CHECK(json[0].at("name") == "inbox");
  CHECK(json[0].at("state") == "applied");
  CHECK(json[0].at("applied_at").get<std::string>().size() == 26);
  CHECK(json[all.size() - 1].at("state") == "pending");
  CHECK(json[all.size() - 1].at("applied_at") == "");
  CHECK(json[all.size()].at("version") == 99);
  CHECK(json[all.size()].at("name") == "of_tomorrow");
  CHECK(json[all.size()].at("state") == "newer");
  CHECK(run({"migrate", "--info", "--print"}, db.url()).status == 2);
}

TEST_CASE("migrate --print prints the SQL without a database") {
  for (const char* url :
       {"sqlite:/nonexistent/x.db", "mariadb://nobody@nowhere.invalid/x", "soci:postgresql://host=nowhere.invalid"}) {
    const Ended ended = run({"migrate", "--print"}, url);
    CHECK(ended.status == 0);
    CHECK(ended.out.find("CREATE TABLE IF NOT EXISTS txinbox_consumed_message") != std::string::npos);
  }
  CHECK(run({"migrate", "--print"}, "mysql://h/x").out.find("InnoDB") != std::string::npos);
  const auto json = nlohmann::json::parse(run({"migrate", "--print", "--json"}, "sqlite:x").out);
  CHECK(json.at(0).at("version") == 1);
}

TEST_CASE("doctor finds missing tables, and no error once they are there") {
  const TestDatabase db(TestDatabase::Tables::none);
  const Ended ill = run({"doctor"}, db.url());
  CHECK(ill.status == 1);
  CHECK(ill.out.starts_with("SEVERITY"));
  CHECK(ill.out.find("txinbox_consumed_message") != std::string::npos);
  run({"migrate"}, db.url());
  const Ended well = run({"doctor", "--json"}, db.url());
  bool warned = false;
  for (const auto& finding : nlohmann::json::parse(well.out)) {
    CHECK(finding.at("severity") != "error");
    CHECK_FALSE(finding.at("remedy").get<std::string>().empty());
    warned = warned || finding.at("severity") == "warning";
  }
  CHECK(well.status == (warned ? 1 : 0));
}

TEST_CASE("status counts by consumer") {
  const Orders orders;
  CHECK(run({"status"}, orders.db.url()).status == 0);
  orders.consume(Orders::line(1) + Orders::line(2));
  const Ended text = run({"status"}, orders.db.url());
  CHECK(text.status == 0);
  CHECK(text.out.find("CONSUMER  CONSUMED") != std::string::npos);
  CHECK(text.out.find("\norders           2 ") != std::string::npos);
  const auto json = nlohmann::json::parse(run({"status", "--json"}, orders.db.url()).out);
  CHECK(json.at("database") == database());
  CHECK(json.at("rows") == 2);
  CHECK(json.at("consumers").at(0).at("consumer") == "orders");
  CHECK(json.at("consumers").at(0).at("consumed") == 2);
}

TEST_CASE("status --consumer counts the rows of this consumer only") {
  const Orders orders;
  orders.consume(Orders::line(1) + Orders::line(2));
  run({"consume", "--consumer", "other", "--key", "/no", "--sql", "select 1"}, orders.db.url(), Orders::line(1));
  const auto json = nlohmann::json::parse(run({"status", "--consumer", "orders", "--json"}, orders.db.url()).out);
  CHECK(json.at("rows") == 2);
  REQUIRE(json.at("consumers").size() == 1);
  CHECK(json.at("consumers").at(0).at("consumer") == "orders");
  CHECK(json.at("consumers").at(0).at("last_minute") == 2);
  CHECK(run({"status", "--consumer", std::string(65, 'c')}, orders.db.url()).status == 2);
}

TEST_CASE("status says that an unknown consumer is unknown") {
  const Orders orders;
  orders.consume(Orders::line(1));
  for (const Command::Arguments& words : {Command::Arguments{"status", "--consumer", "oders"},
                                          {"leases", "--consumer", "oders"},
                                          {"show", "--consumer", "oders", "o1"},
                                          {"forget", "--consumer", "oders", "o1"},
                                          {"failed", "list", "--consumer", "oders"},
                                          {"failed", "retry", "--consumer", "oders", "o1"},
                                          {"failed", "discard", "--consumer", "oders", "--all"},
                                          {"purge", "--older-than", "1d", "--consumer", "oders"},
                                          {"purge", "--older-than", "1d", "--consumer", "oders", "--dry-run"}}) {
    const std::string err = run(words, orders.db.url()).err;
    CAPTURE(err);
    CHECK(err.ends_with("txinbox: nothing is recorded for a consumer 'oders'; txinbox status lists all consumers\n"));
  }
  CHECK(run({"status"}, orders.db.url()).out.find("oders") == std::string::npos);
  for (const Command::Arguments& words : {Command::Arguments{"leases", "--consumer", "orders"},
                                          {"failed", "list", "--consumer", "orders"},
                                          {"purge", "--older-than", "1d", "--consumer", "orders"}}) {
    CHECK(run(words, orders.db.url()).err.empty());
  }
}

TEST_CASE("status --watch runs until a signal, which is not an error") {
  const Orders orders;
  Command command({"status", "--watch", "--json"}, orders.db.url());
  REQUIRE(command.printed("\"rows\":0"));
  orders.consume(Orders::line(1));
  CHECK(command.printed("\"rows\":1"));
  command.signal(SIGINT);
  CHECK(command.wait().status == 0);
}

TEST_CASE("without a terminal, status --watch prints a block each time, with the current rates") {
  const Orders orders;
  orders.consume(Orders::line(1));
  Command command({"status", "--watch"}, orders.db.url());
  REQUIRE(command.printed("A SECOND"));
  CHECK(command.printed("NOW"));
  orders.consume(Orders::line(2));
  REQUIRE(command.printed("2 rows"));
  command.signal(SIGTERM);
  const Ended ended = command.wait();
  CHECK(ended.status == 0);
  CHECK(ended.out.find('\x1b') == std::string::npos);
  CHECK(ended.out.find("\n\n" + ended.out.substr(0, ended.out.find(' '))) != std::string::npos);
}

TEST_CASE("status has the duplicates that a run of consume caught") {
  const Orders orders;
  orders.consume(Orders::line(1));
  orders.consume(Orders::line(1) + Orders::line(1) + Orders::line(2));
  const auto json = nlohmann::json::parse(run({"status", "--json"}, orders.db.url()).out).at("consumers").at(0);
  CHECK(json.at("duplicates") == 2);
  CHECK(json.at("oldest_duplicate_ms").is_number_unsigned());
  CHECK(json.at("consumed") == 2);
  CHECK(json.at("failed") == 0);
}

TEST_CASE("doctor reports a parked message as a note, and an expired lease as a warning") {
  const Orders orders;
  orders.consume(Orders::line(1) + Orders::line(2));
  orders.db.run("update txinbox_consumed_message set state = 'parked' where business_key = 'o1'");
  CHECK(run({"doctor"}, orders.db.url()).out.find("parked messages: 1") != std::string::npos);
  orders.db.run("update txinbox_consumed_message set state = 'consuming', lease_owner = 'w', lease_expires_at = " +
                sql_time(std::chrono::hours(-1)) + " where business_key = 'o2'");
  const Ended ended = run({"doctor", "--json"}, orders.db.url());
  CHECK(ended.status == 1);
  bool found = false;
  for (const auto& finding : nlohmann::json::parse(ended.out)) {
    if (finding.at("subject") != "consumer orders" || finding.at("severity") != "warning") continue;
    found = finding.at("found").get<std::string>().starts_with("expired leases that nobody has taken over: 1,");
  }
  CHECK(found);
}
