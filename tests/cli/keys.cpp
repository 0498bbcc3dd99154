// The rows of keys: leases, show and forget.

#include <chrono>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/orders.hpp"
#include "support/sql_time.hpp"

using namespace txinbox::test;

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
