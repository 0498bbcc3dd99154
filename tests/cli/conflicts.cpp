// A key that comes again with different values in --content.

#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/orders.hpp"

using namespace txinbox::test;

namespace {

/// An order as JSON: its quantity is `qty`, its account is `account`.
std::string order(const std::string& qty, const std::string& account) {
  return R"({"no":"o1","sku":"a","qty":)" + qty + R"(,"to":{"account":)" + account + "}}\n";
}

const Command::Arguments by_quantity_and_account{"--content", "/qty", "--content", "/to/account"};

}  // namespace

TEST_CASE("a key that comes with different content is a conflict, which is reported and not consumed") {
  const Orders orders;
  const Ended ended = orders.consume(
      order("1", "\"A\"") + order("1", "\"A\"") + order("2", "\"A\"") + order("1", "\"B\"") + Orders::line(2),
      by_quantity_and_account);
  CHECK(ended.status == 1);
  CHECK(ended.err ==
        "line 3: conflict: the same key came with other content\n"
        "line 4: conflict: the same key came with other content\n");
  CHECK(counts(ended) == "consumed 2, already consumed 1, conflicts 2, parked 0, failed 0");
  CHECK(orders.orders() == 2);
  CHECK(orders.taken() == 2);
}

TEST_CASE("a later run also finds a conflict, even with one message at a time") {
  const Orders orders;
  CHECK(orders.consume(order("1", "\"A\""), by_quantity_and_account).status == 0);
  for (const char* batch : {"1", "100"}) {
    Command::Arguments more = by_quantity_and_account;
    more.insert(more.end(), {"--batch", batch, "--json"});
    const Ended ended = orders.consume(order("1", "\"B\"") + order("1", "\"A\""), more);
    CHECK(ended.status == 1);
    CHECK(
        ended.out.starts_with("{\"line\":1,\"key\":\"o1\",\"outcome\":\"conflict\"}\n"
                              "{\"line\":2,\"key\":\"o1\",\"outcome\":\"already_consumed\"}\n"));
    CHECK(ended.last_line().find("\"conflicts\":1,") != std::string::npos);
  }
  CHECK(orders.taken() == 1);
}

TEST_CASE("missing, null and empty contents, and contents of another type, all differ") {
  const Orders orders;
  const std::string missing = R"({"no":"o1","sku":"a","qty":1})"
                              "\n";
  CHECK(orders.consume(missing, by_quantity_and_account).status == 0);
  const Ended ended = orders.consume(
      order("1", "null") + order("1", "\"\"") + order("1", "1") + order("1", "\"1\"") + order("1.0", "null") + missing,
      by_quantity_and_account);
  CHECK(counts(ended) == "consumed 0, already consumed 1, conflicts 5, parked 0, failed 0");
}

TEST_CASE("without --content, or with a row that was written without it, contents are not compared") {
  const Orders orders;
  CHECK(orders.consume(order("1", "\"A\"")).status == 0);
  CHECK(orders.consume(order("1", "\"B\"") + order("2", "\"A\"")).status == 0);
  CHECK(orders.consume(order("2", "\"B\""), by_quantity_and_account).status == 0);
  CHECK(orders.taken() == 1);
}

TEST_CASE("with --stop-on-error, no message after a conflict is consumed") {
  const Orders orders;
  Command::Arguments more = by_quantity_and_account;
  more.emplace_back("--stop-on-error");
  const Ended ended = orders.consume(order("1", "\"A\"") + order("2", "\"A\"") + Orders::line(2), more);
  CHECK(ended.status == 1);
  CHECK(counts(ended) == "consumed 1, already consumed 0, conflicts 1, parked 0, failed 0");
  CHECK(ended.last_line().ends_with("  stopped: last line handled 1, go on at line 2"));
  CHECK(orders.orders() == 1);
}

TEST_CASE("conflicts lists what was refused, and both messages") {
  const Orders orders;
  CHECK(run({"conflicts"}, orders.db.url()).out == "nothing found\n");
  CHECK(run({"conflicts", "--json"}, orders.db.url()).out == "[]\n");
  CHECK(orders
            .consume(order("1", "\"A\"") + order("2", "\"A\"") + order("2", "\"A\"") + order("3", "\"A\""),
                     by_quantity_and_account)
            .status == 1);
  const Ended listed = run({"conflicts", "--consumer", "orders"}, orders.db.url());
  CHECK(listed.status == 0);
  CHECK(listed.out.starts_with("CONSUMER  BUSINESS KEY  MESSAGE ID  CONTENT"));
  CHECK(std::ranges::count(listed.out, '\n') == 3);
  const auto json = nlohmann::json::parse(run({"conflicts", "--json", "--", "o1"}, orders.db.url()).out);
  REQUIRE(json.size() == 2);
  std::set<std::string> contents;
  std::set<int> deliveries;
  for (const auto& each : json) {
    CHECK(each.at("consumer") == "orders");
    CHECK(each.at("business_key") == "o1");
    CHECK(each.at("state") == "consumed");
    CHECK(each.at("content_hash") != each.at("original_hash"));
    contents.insert(each.at("content_hash"));
    deliveries.insert(each.at("deliveries").get<int>());
  }
  CHECK(contents.size() == 2);
  CHECK(deliveries == std::set<int>{1, 2});
  CHECK(run({"conflicts", "o2"}, orders.db.url()).out == "nothing found\n");
  const Ended limited = run({"conflicts", "--limit", "1"}, orders.db.url());
  CHECK(limited.err == "txinbox: there are more than 1; --limit shows more\n");
  CHECK(std::ranges::count(limited.out, '\n') == 2);
}
