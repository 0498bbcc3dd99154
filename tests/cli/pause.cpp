// pause and resume, and the pauses in status.

#include <pwd.h>
#include <unistd.h>

#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/orders.hpp"
#include "support/sql_time.hpp"

using namespace txinbox::test;

namespace {

std::string system_user() {
  const passwd* user = ::getpwuid(::getuid());
  return user == nullptr ? std::to_string(::getuid()) : user->pw_name;
}

nlohmann::json pauses(const TestDatabase& db, const Command::Arguments& more = {}) {
  Command::Arguments words{"status", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  return nlohmann::json::parse(run(words, db.url()).out).at("pauses");
}

/// The line of status about a pause of this consumer; empty if there is none.
std::string status_line(const TestDatabase& db, const std::string& consumer) {
  const std::string out = run({"status"}, db.url()).out;
  const auto at = out.find("\npaused: " + consumer + " ");
  return at == std::string::npos ? "" : out.substr(at + 1, out.find('\n', at + 1) - at - 1);
}

}  // namespace

TEST_CASE("pause and resume print what they did, and status shows the pause in between") {
  const Orders orders;
  CHECK(orders.consume(Orders::line(1)).status == 0);
  CHECK(pauses(orders.db).empty());
  const Ended paused =
      run({"pause", "--consumer", "orders", "--reason", "the stock is wrong", "--by", "ann"}, orders.db.url());
  CHECK(paused.status == 0);
  CHECK(paused.out == "paused orders until txinbox resume\n");
  CHECK(paused.err.empty());
  const std::string line = status_line(orders.db, "orders");
  CHECK(line.starts_with("paused: orders since 2"));
  CHECK(line.ends_with(" (UTC) until txinbox resume by ann: the stock is wrong"));
  const auto json = pauses(orders.db);
  REQUIRE(json.size() == 1);
  CHECK(json[0].at("consumer") == "orders");
  CHECK_FALSE(json[0].at("paused_at").get<std::string>().empty());
  CHECK(json[0].at("resumes_at") == "");
  CHECK(json[0].at("reason") == "the stock is wrong");
  CHECK(json[0].at("by") == "ann");
  CHECK(pauses(orders.db, {"--consumer", "orders"}).size() == 1);
  CHECK(pauses(orders.db, {"--consumer", "another"}).empty());

  const Ended resumed = run({"resume", "--consumer", "orders", "--reason", "repaired"}, orders.db.url());
  CHECK(resumed.status == 0);
  CHECK(resumed.out == "resumed orders\n");
  CHECK(status_line(orders.db, "orders").empty());
  CHECK(orders.db.number("select count(*) from txinbox_audit where action = 'resume' and reason = 'repaired'") == 1);
  const Ended again = run({"resume", "--consumer", "orders"}, orders.db.url());
  CHECK(again.status == 1);
  CHECK(again.out.empty());
  CHECK(again.err == "txinbox: the consumer 'orders' is not paused\n");
}

TEST_CASE("pause --for sets the end of the pause, and --by is the system's user by default") {
  const Orders orders;
  CHECK(orders.consume(Orders::line(1)).status == 0);
  const Ended paused = run({"pause", "--consumer", "orders", "--reason", "r", "--for", "90m"}, orders.db.url());
  CHECK(paused.out == "paused orders for 1h30m\n");
  CHECK(orders.db.number("select count(*) from txinbox_pause where resumes_at > " + sql_time(std::chrono::minutes(89)) +
                         " and resumes_at < " + sql_time(std::chrono::minutes(91))) == 1);
  const auto json = pauses(orders.db);
  REQUIRE(json.size() == 1);
  CHECK_FALSE(json[0].at("resumes_at").get<std::string>().empty());
  CHECK(json[0].at("by") == system_user());
  const std::string line = status_line(orders.db, "orders");
  CHECK(line.find(" (UTC) until 2") != std::string::npos);
  CHECK(line.ends_with(" (UTC) by " + system_user() + ": r"));
}

TEST_CASE("pause and resume print JSON") {
  const Orders orders;
  CHECK(orders.consume(Orders::line(1)).status == 0);
  const Command::Arguments pause{"pause", "--consumer", "orders", "--reason", "r", "--json"};
  Command::Arguments pause_for = pause;
  pause_for.insert(pause_for.end(), {"--for", "1h"});
  CHECK(run(pause, orders.db.url()).out == "{\"paused\":true,\"for_s\":null}\n");
  CHECK(run(pause_for, orders.db.url()).out == "{\"paused\":true,\"for_s\":3600}\n");
  const Command::Arguments resume{"resume", "--consumer", "orders", "--json"};
  CHECK(run(resume, orders.db.url()).out == "{\"resumed\":true}\n");
  const Ended again = run(resume, orders.db.url());
  CHECK(again.out == "{\"resumed\":false}\n");
  CHECK(again.status == 1);
}

TEST_CASE("a consumer that nothing is recorded for is paused all the same, with a hint") {
  const TestDatabase db;
  const Ended paused = run({"pause", "--consumer", "not yet", "--reason", "r"}, db.url());
  CHECK(paused.status == 0);
  CHECK(paused.err == "txinbox: nothing is recorded for a consumer 'not yet'; txinbox status lists all consumers\n");
  CHECK_FALSE(status_line(db, "not yet").empty());
  CHECK(run({"resume", "--consumer", "not yet"}, db.url()).status == 0);
}

TEST_CASE("a reason cannot send commands to the terminal") {
  const TestDatabase db;
  CHECK(run({"pause", "--consumer", "c", "--reason", "a\x1b[2Jb\nc", "--by", "x"}, db.url()).status == 0);
  CHECK(status_line(db, "c").ends_with(" by x: a\\x1b[2Jb\\x0ac"));
}

TEST_CASE("pause refuses a wrong command line and changes nothing") {
  const TestDatabase db;
  const Command::Arguments good{"pause", "--consumer", "c"};
  for (const Command::Arguments& more : {Command::Arguments{},
                                         {"--reason", ""},
                                         {"--reason", std::string(1001, 'r')},
                                         {"--reason", "r", "--for", "0s"},
                                         {"--reason", "r", "--for", "10"},
                                         {"--reason", "r", "--by", std::string(256, 'a')}}) {
    Command::Arguments words = good;
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run(words, db.url());
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK_FALSE(ended.err.empty());
  }
  CHECK(run({"resume"}, db.url()).status == 2);
  CHECK(db.number("select count(*) from txinbox_pause") == 0);
}

TEST_CASE("without the tables of V3, pause says what to do, and status works") {
  const Orders orders;
  CHECK(orders.consume(Orders::line(1)).status == 0);
  orders.db.run("drop table txinbox_pause");
  const Ended paused = run({"pause", "--consumer", "orders", "--reason", "r"}, orders.db.url());
  CHECK(paused.status == 3);
  CHECK(paused.err.find("txinbox migrate") != std::string::npos);
  const Ended status = run({"status"}, orders.db.url());
  CHECK(status.status == 0);
  CHECK(status.out.find("orders") != std::string::npos);
  CHECK(pauses(orders.db).empty());
}
