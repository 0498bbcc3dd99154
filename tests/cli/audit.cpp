// audit, and the records of the commands that change something.

#include <pwd.h>
#include <unistd.h>

#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/orders.hpp"

using namespace txinbox::test;

namespace {

std::string system_user() {
  const passwd* user = ::getpwuid(::getuid());
  return user == nullptr ? std::to_string(::getuid()) : user->pw_name;
}

nlohmann::json audit(const TestDatabase& db, Command::Arguments more = {}) {
  more.insert(more.begin(), {"audit", "--json"});
  return nlohmann::json::parse(run(more, db.url()).out);
}

/// Consumes the order 1, and parks the orders 2, 3 and 4.
void fill(const Orders& orders) {
  const auto bad = [](const char* number) {
    return R"({"no":"o)" + std::string(number) + R"(","sku":null,"qty":1})" + "\n";
  };
  CHECK(orders.consume(Orders::line(1) + bad("2") + bad("3") + bad("4"), {"--max-attempts", "1"}).status == 1);
}

}  // namespace

TEST_CASE("each command that changes something records who did it, and why") {
  const Orders orders;
  fill(orders);
  CHECK(audit(orders.db).empty());
  const std::string url = orders.db.url();
  const Command::Arguments ann{"--consumer", "orders", "--by", "ann", "--reason", "ticket 7"};
  const auto do_it = [&](Command::Arguments words, const std::string& key) {
    words.insert(words.end(), ann.begin(), ann.end());
    if (!key.empty()) words.push_back(key);
    const Ended ended = run(words, url);
    CAPTURE(ended.err);
    CHECK(ended.status == 0);
  };
  do_it({"failed", "retry"}, "o2");
  do_it({"failed", "discard"}, "o3");
  do_it({"forget"}, "o1");
  do_it({"purge", "--older-than", "1h"}, "");
  const auto records = audit(orders.db);
  REQUIRE(records.size() == 5);
  const std::vector<std::string> actions{"purge_consumed", "purge_consumed_begin", "forget", "discard", "retry"};
  for (std::size_t i = 0; i < actions.size(); ++i) {
    CHECK(records[i].at("action") == actions[i]);
    CHECK(records[i].at("by") == "ann");
    CHECK(records[i].at("reason") == "ticket 7");
    CHECK(records[i].at("consumer") == "orders");
  }
  CHECK(records[4].at("business_key") == "o2");
  CHECK(records[4].at("messages") == 1);
  CHECK_FALSE(records[4].at("at").get<std::string>().empty());
}

TEST_CASE("audit lists the chosen changes") {
  const Orders orders;
  fill(orders);
  const std::string url = orders.db.url();
  CHECK(run({"failed", "retry", "--all", "--by", "ann"}, url).status == 0);
  CHECK(run({"forget", "--consumer", "orders", "o1"}, url).status == 0);
  CHECK(audit(orders.db).size() == 4);
  CHECK(audit(orders.db, {"--by", "ann"}).size() == 3);
  CHECK(audit(orders.db, {"--by", system_user()}).size() == 1);
  CHECK(audit(orders.db, {"--action", "forget"}).size() == 1);
  CHECK(audit(orders.db, {"--newer-than", "1h"}).size() == 4);
  CHECK(audit(orders.db, {"--consumer", "orders", "o2"}).size() == 1);
  CHECK(audit(orders.db, {"--consumer", "another"}).empty());

  const Ended two = run({"audit", "--limit", "2"}, url);
  CHECK(two.status == 0);
  CHECK(two.err == "txinbox: there are more than 2; --limit shows more\n");
  CHECK(two.out.starts_with("AT (UTC)"));
  CHECK(two.out.find("forget") != std::string::npos);
  CHECK(run({"audit", "--action", "pause"}, url).out == "nothing found\n");
  CHECK(run({"audit", "--newer-than", "7"}, url).status == 2);
}

TEST_CASE("a reason in the list of changes cannot send commands to the terminal") {
  const Orders orders;
  fill(orders);
  CHECK(run({"forget", "--consumer", "orders", "--reason", "a\x1b[2Jb", "o1"}, orders.db.url()).status == 0);
  const std::string out = run({"audit"}, orders.db.url()).out;
  CHECK(out.find('\x1b') == std::string::npos);
  CHECK(out.find("a\\x1b[2Jb") != std::string::npos);
}

TEST_CASE("without the tables of V3, a change says what to do, and changes nothing") {
  const Orders orders;
  fill(orders);
  orders.db.run("drop table txinbox_audit");
  for (const Command::Arguments& words : {Command::Arguments{"failed", "retry", "--all"},
                                          {"forget", "--consumer", "orders", "o1"},
                                          {"purge", "--older-than", "1h"},
                                          {"audit"}}) {
    const Ended ended = run(words, orders.db.url());
    CAPTURE(ended.err);
    CHECK(ended.status == 3);
    CHECK(ended.err.find("txinbox migrate") != std::string::npos);
  }
  CHECK(orders.db.number("select count(*) from txinbox_consumed_message where state = 'parked'") == 3);
  CHECK(orders.orders() == 1);
}
