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
  CHECK(before.out.starts_with("VERSION  NAME    STATE    APPLIED (UTC)\nV1       inbox   pending  -\n"));
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

TEST_CASE("leases lists the owners of keys, the oldest lease first, and the expired leases") {
  const Orders orders;
  CHECK(run({"leases"}, orders.db.url()).out == "nothing found\n");
  CHECK(run({"leases", "--json"}, orders.db.url()).out == "[]\n");
  orders.consume(Orders::line(1) + Orders::line(2) + Orders::line(3) + Orders::line(4));
  const auto lease = [&](const char* key, std::chrono::seconds since, std::chrono::seconds until) {
    orders.db.run(
        "update txinbox_consumed_message set state = 'consuming', lease_owner = 'host:7', lease_fence = 9, "
        "attempts = 2, consumed_at = " +
        sql_time(since) + ", lease_expires_at = " + sql_time(until) + " where business_key = '" + key + "'");
  };
  lease("o1", std::chrono::hours(-1), std::chrono::hours(5));
  lease("o2", std::chrono::hours(-3), std::chrono::hours(-2));
  // A lease that was released, and a lease without an expiry time.
  orders.db.run("update txinbox_consumed_message set state = 'consuming' where business_key = 'o3'");
  lease("o4", std::chrono::hours(0), std::chrono::hours(0));
  orders.db.run("update txinbox_consumed_message set lease_expires_at = null where business_key = 'o4'");

  const Ended text = run({"leases"}, orders.db.url());
  CHECK(text.status == 0);
  CHECK(text.err.empty());
  CHECK(text.out.starts_with("CONSUMER  BUSINESS KEY  OWNER   ATTEMPT          SINCE (UTC)"));
  CHECK(text.out.find("\norders    o2            host:7        2  2") != std::string::npos);
  CHECK(text.out.find("  expired 2h ago\n") != std::string::npos);
  CHECK(text.out.find("  -  expired\n") != std::string::npos);
  CHECK(text.out.find("o3") == std::string::npos);

  const auto json = nlohmann::json::parse(run({"leases", "--json"}, orders.db.url()).out);
  REQUIRE(json.size() == 3);
  CHECK(json[0].at("business_key") == "o2");
  CHECK(json[0].at("remaining_ms").get<long long>() <= -7'200'000);
  CHECK(json[1].at("business_key") == "o1");
  CHECK(json[1].at("owner") == "host:7");
  CHECK(json[1].at("fence") == 9);
  CHECK(json[1].at("attempts") == 2);
  CHECK(json[1].at("held_ms").get<long long>() >= 3'600'000);
  CHECK(json[1].at("remaining_ms").get<long long>() > 14'400'000);
  CHECK(json[1].at("remaining_ms").get<long long>() <= 18'000'000);
  CHECK(json[1].at("since").get<std::string>().size() == 26);
  CHECK(json[2].at("expires_at") == "");
  CHECK(json[2].at("remaining_ms") == 0);

  const Ended one = run({"leases", "--limit", "1", "--json"}, orders.db.url());
  CHECK(nlohmann::json::parse(one.out).size() == 1);
  CHECK(one.err == "txinbox: there are more than 1; --limit shows more\n");
  CHECK(nlohmann::json::parse(run({"leases", "--consumer", "orders", "--json"}, orders.db.url()).out).size() == 3);
  CHECK(run({"leases", "--consumer", "other"}, orders.db.url()).out == "nothing found\n");
  CHECK(run({"leases", "--limit", "0"}, orders.db.url()).status == 2);
}

TEST_CASE("show prints who has a lease, and how often a message failed") {
  const Orders orders;
  orders.consume(Orders::line(1));
  orders.db.run(
      "update txinbox_consumed_message set state = 'consuming', lease_owner = 'worker', lease_fence = 7, "
      "lease_expires_at = " +
      sql_time(std::chrono::hours(1)));
  orders.db.run(
      "insert into txinbox_failed_message (consumer, business_key, attempts, last_error, last_failed_at) "
      "values ('orders', 'o1', 3, 'deadlock', " +
      sql_time(std::chrono::hours(0)) + ")");
  const std::string text = run({"show", "--consumer", "orders", "o1"}, orders.db.url()).out;
  CHECK(text.find("\nlease         of worker until 2") != std::string::npos);
  CHECK(text.find("\nfence         7\n") != std::string::npos);
  CHECK(text.find("\nfailures      3, the last at 2") != std::string::npos);
  CHECK(text.find(" UTC: deadlock\n") != std::string::npos);
  const auto json = nlohmann::json::parse(run({"show", "--consumer", "orders", "o1", "--json"}, orders.db.url()).out);
  CHECK(json.at("lease_owner") == "worker");
  CHECK(json.at("lease_fence") == 7);
  CHECK(json.at("failures") == 3);
  CHECK(json.at("conflicts") == 0);
}

TEST_CASE("show prints one key's row, and is status 1 when there is none") {
  const Orders orders;
  orders.consume(Orders::line(1));
  const Ended text = run({"show", "--consumer", "orders", "o1"}, orders.db.url());
  CHECK(text.status == 0);
  CHECK(text.out.starts_with("consumer      orders\nbusiness key  o1\nstate         consumed\nsince         "));
  const auto json = nlohmann::json::parse(run({"show", "--consumer", "orders", "o1", "--json"}, orders.db.url()).out);
  CHECK(json.at("business_key") == "o1");
  CHECK(json.at("stored").is_null());
  const Ended none = run({"show", "--consumer", "orders", "O1"}, orders.db.url());
  CHECK(none.status == 1);
  CHECK(none.out.empty());
  CHECK_FALSE(none.err.empty());
}

TEST_CASE("show prints a message that only failed, although it has no row of its own") {
  const Orders orders;
  orders.db.run(
      "insert into txinbox_failed_message (consumer, business_key, attempts, last_error, last_failed_at) "
      "values ('orders', 'o9', 8, 'deadlock', " +
      sql_time(std::chrono::hours(0)) + ")");
  const Ended text = run({"show", "--consumer", "orders", "o9"}, orders.db.url());
  CHECK(text.status == 0);
  CHECK(text.out.starts_with(
      "consumer      orders\nbusiness key  o9\nstate         failing\nfailures      8, the last at"));
  const auto json = nlohmann::json::parse(run({"show", "--consumer", "orders", "o9", "--json"}, orders.db.url()).out);
  CHECK(json.at("state") == "failing");
  CHECK(json.at("failures") == 8);
}

TEST_CASE("a key cannot send commands to the terminal") {
  const Orders orders;
  orders.consume(R"({"no":"\u001b[2Jx","sku":"a","qty":1})");
  const Ended ended = run({"show", "--consumer", "orders", "\x1b[2Jx"}, orders.db.url());
  CHECK(ended.out.find("\\x1b[2Jx") != std::string::npos);
  CHECK(ended.out.find('\x1b') == std::string::npos);
}

TEST_CASE("a stored value is shown as text, or in hexadecimal if it is not text") {
  const Orders orders;
  orders.consume(Orders::line(1) + Orders::line(2));
  const std::string bytes = on_postgresql() ? "'\\x" : "x'";
  auto store = [&](const char* hex, const char* key) {
    orders.db.run("update txinbox_consumed_message set result = " + bytes + hex + "' where business_key = '" + key +
                  "'");
  };
  store("6f6b0a6f6b", "o1");
  store("ff00", "o2");
  CHECK(run({"show", "--consumer", "orders", "o1"}, orders.db.url()).out.ends_with("stored        ok\nok\n"));
  CHECK(run({"show", "--consumer", "orders", "o2"}, orders.db.url()).out.ends_with("stored        0xff00\n"));
  const auto json = nlohmann::json::parse(run({"show", "--consumer", "orders", "o2", "--json"}, orders.db.url()).out);
  CHECK(json.at("stored_hex") == "ff00");
}

TEST_CASE("a forgotten key is consumed again, and forgetting it twice is status 1") {
  const Orders orders;
  orders.consume(Orders::line(1));
  orders.db.run("delete from t_order");
  const Ended forgotten = run({"forget", "--consumer", "orders", "o1"}, orders.db.url());
  CHECK(forgotten.status == 0);
  CHECK(forgotten.out == "forgotten: the next delivery runs again\n");
  CHECK(run({"forget", "--consumer", "orders", "o1"}, orders.db.url()).status == 1);
  CHECK(run({"forget", "--consumer", "orders", "--json", "o1"}, orders.db.url()).out == "{\"forgotten\":false}\n");
  CHECK(orders.consume(Orders::line(1)).status == 0);
  CHECK(orders.orders() == 1);
  CHECK(orders.taken() == 2);
}

TEST_CASE("a key that begins with a dash can be shown") {
  const Orders orders;
  orders.consume(R"({"no":"-x","sku":"a","qty":1})");
  CHECK(run({"show", "--consumer", "orders", "--", "-x"}, orders.db.url()).status == 0);
}
