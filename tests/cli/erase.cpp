// erase

#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/orders.hpp"

using namespace txinbox::test;

namespace {

long long keys(const TestDatabase& db, const std::string& key) {
  return db.number("select count(*) from txinbox_consumed_message where business_key = '" + key + "'");
}

}  // namespace

TEST_CASE("erase replaces the key, and the message still does not run again") {
  const Orders orders;
  CHECK(orders.consume(Orders::line(1)).status == 0);
  const Ended erased =
      run({"erase", "--consumer", "orders", "--no-consumer-runs", "--by", "ann", "--reason", "request 17", "o1"},
          orders.db.url());
  CAPTURE(erased.err);
  CHECK(erased.status == 0);
  CHECK(erased.out == "erased\n");
  CHECK(erased.err.empty());
  CHECK(keys(orders.db, "o1") == 0);
  CHECK(orders.consume(Orders::line(1)).status == 0);
  CHECK(orders.orders() == 1);
  CHECK(keys(orders.db, "o1") == 0);
  CHECK(run({"audit"}, orders.db.url()).out.find("o1") == std::string::npos);
  CHECK(run({"erase", "--consumer", "orders", "--no-consumer-runs", "o1"}, orders.db.url()).status == 0);
}

TEST_CASE("erase takes a file of keys, and names no key in its messages") {
  const Orders orders;
  CHECK(orders.consume(Orders::line(1) + Orders::line(2)).status == 0);
  const Command::Arguments words{"erase", "--consumer", "orders", "--no-consumer-runs", "--keys-from", "-"};
  const Ended some = run(words, orders.db.url(), "o1\nunknown\no2\n");
  CHECK(some.status == 1);
  CHECK(some.out == "erased 2 of 3 messages\n");
  CHECK(some.err == "txinbox: line 2: nothing is recorded for it\n");
  Command::Arguments json = words;
  json.emplace_back("--json");
  const Ended again = run(json, orders.db.url(), "o1\nunknown\n");
  CHECK(again.out == "{\"line\":1,\"outcome\":\"erased\"}\n{\"line\":2,\"outcome\":\"not_found\"}\n");
  CHECK(run({"erase", "--consumer", "orders"}, orders.db.url()).status == 2);
  const Ended nobody = run({"erase", "--consumer", "nobody", "--no-consumer-runs", "o1"}, orders.db.url());
  CHECK(nobody.status == 1);
  CHECK(nobody.err.find("nothing is recorded for a consumer 'nobody'") != std::string::npos);
}

TEST_CASE("erase tells what to do with a torn message") {
  const Orders orders;
  CHECK(orders.consume(Orders::line(1)).status == 0);
  orders.db.run("update txinbox_consumed_message set state = 'torn'");
  const Command::Arguments words{"erase", "--consumer", "orders", "--no-consumer-runs", "o1"};
  const Ended torn = run(words, orders.db.url());
  CHECK(torn.status == 1);
  CHECK(torn.err.find("it is torn") != std::string::npos);
  CHECK(keys(orders.db, "o1") == 1);
  CHECK(run({"failed", "discard", "--consumer", "orders", "o1"}, orders.db.url()).status == 0);
  CHECK(run(words, orders.db.url()).status == 0);
  CHECK(keys(orders.db, "o1") == 0);
}
