// txinbox failed, and consume with --max-attempts.

#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/orders.hpp"

using namespace txinbox::test;

namespace {

/// Orders whose line `{"no":"oN","sku":null}` fails, and what the database has of them.
class FailedOrders : public Orders {
 public:
  static std::string bad(int number) {
    return R"({"no":"o)" + std::to_string(number) + R"(","sku":null,"qty":1})" + "\n";
  }

  Ended failed(Command::Arguments arguments) const {
    arguments.insert(arguments.begin(), "failed");
    return run(arguments, db.url());
  }

  nlohmann::json list(Command::Arguments more = {}) const {
    more.insert(more.begin(), {"list", "--json"});
    return nlohmann::json::parse(failed(more).out);
  }

  /// A column of the consumer's row with that key.
  void set_state(const std::string& key, const std::string& state) const {
    db.run("update txinbox_consumed_message set state = '" + state + "' where business_key = '" + key + "'");
  }

  void set_age(const std::string& key, const std::string& sqlite3, const std::string& mysql,
               const std::string& postgresql) const {
    const std::string& time = on_sqlite3() ? sqlite3 : on_mysql() ? mysql : postgresql;
    db.run("update txinbox_failed_message set first_failed_at = " + time + ", last_failed_at = " + time +
           " where business_key = '" + key + "'");
  }
  /// This many messages that failed once and are parked.
  void insert_parked(int count) const {
    const std::string now =
        on_sqlite3() ? "strftime('%Y-%m-%d %H:%M:%f', 'now')" : (on_mysql() ? "utc_timestamp(6)" : "clock_timestamp()");
    const std::string token = on_postgresql() ? "gen_random_uuid()" : "x'00'";
    std::string failed =
        "insert into txinbox_failed_message (consumer, business_key, attempts, last_failed_at) values ";
    std::string parked =
        "insert into txinbox_consumed_message (consumer, business_key, state, attempt_token, consumed_at) values ";
    for (int i = 0; i < count; ++i) {
      const std::string key = std::string(i == 0 ? "" : ",") + "('orders', 'o" + std::to_string(i) + "', ";
      failed += key + "1, " + now + ")";
      parked += key + "'parked', " + token + ", " + now + ")";
    }
    db.run(failed);
    db.run(parked);
  }

  void make_three_hours_old(const std::string& key) const {
    set_age(key, "strftime('%Y-%m-%d %H:%M:%f', 'now', '-190 minutes')", "utc_timestamp(6) - interval 190 minute",
            "now() - interval '190 minutes'");
  }
};

}  // namespace

TEST_CASE("a line that fails is counted, and after --max-attempts it is reported as parked") {
  const FailedOrders orders;
  orders.db.run("insert into t_order values ('x', 'a', 1)");
  const std::string input = Orders::line(1) + FailedOrders::bad(2) + Orders::line(3);
  for (const char* batch : {"1", "100"}) {
    const std::string consumer = std::string("c") + batch;
    auto consume = [&](const std::string& lines) {
      return run({"consume", "--consumer", consumer, "--key", "/no", "--sql", "update t_order set sku = :sku",
                  "--max-attempts", "2", "--batch", batch},
                 orders.db.url(), lines);
    };
    const Ended first = consume(input);
    CHECK(first.status == 1);
    CHECK(first.err.starts_with("line 2: statement 1: "));
    CHECK(first.err.find("parked") == std::string::npos);
    const Ended second = consume(input);
    CHECK(second.err.ends_with("; parked: it does not run again until txinbox failed retry\n"));
    CHECK(counts(second) == "consumed 0, already consumed 2, conflicts 0, parked 0, failed 1");
    const Ended third = consume(input);
    CHECK(third.status == 1);
    CHECK(third.err.starts_with("line 2: parked: "));
    CHECK(counts(third) == "consumed 0, already consumed 2, conflicts 0, parked 1, failed 0");
    const auto listed = orders.list({"--consumer", consumer});
    REQUIRE(listed.size() == 1);
    CHECK(listed[0].at("attempts") == 2);
    CHECK(listed[0].at("state") == "parked");
    CHECK(run({"failed", "retry", "--consumer", consumer, "o2"}, orders.db.url()).status == 0);
    CHECK(consume(Orders::line(2)).status == 0);
  }
}

TEST_CASE("without --max-attempts nothing is parked") {
  const FailedOrders orders;
  for (int i = 0; i < 3; ++i) CHECK(orders.consume(FailedOrders::bad(1)).status == 1);
  CHECK(orders.list().at(0).at("attempts") == 3);
  CHECK(orders.list().at(0).at("state") == "failing");
  CHECK(orders.consume(Orders::line(1)).status == 0);
  CHECK(orders.list().empty());
}

TEST_CASE("with --stop-on-error, the lines after a failed one are not counted") {
  const FailedOrders orders;
  const std::string input = FailedOrders::bad(1) + Orders::line(2) + FailedOrders::bad(3);
  for (int i = 0; i < 2; ++i) {
    CHECK(orders.consume(input, {"--stop-on-error", "--max-attempts", "9"}).status == 1);
    REQUIRE(orders.list().size() == 1);
    CHECK(orders.list().at(0).at("business_key") == "o1");
  }
}

TEST_CASE("a line that waits for an earlier one is not counted as failed") {
  const FailedOrders orders;
  // The duplicate delays the lines behind it, until its result is known.
  CHECK(orders.consume(Orders::line(1)).status == 0);
  const Ended ended =
      orders.consume(Orders::line(1) + Orders::line(2) + Orders::line(3), {"--stop-on-error", "--max-attempts", "1"});
  CHECK(ended.status == 0);
  CHECK(orders.db.number("select count(*) from txinbox_failed_message") == 0);
}

TEST_CASE("list shows an aligned table with ages, the latest failure first") {
  const FailedOrders orders;
  CHECK(orders.failed({"list"}).out == "nothing found\n");
  CHECK(orders.failed({"list"}).status == 0);
  CHECK(orders.failed({"list", "--json"}).out == "[]\n");
  orders.consume(FailedOrders::bad(1) + FailedOrders::bad(22), {"--max-attempts", "1"});
  orders.make_three_hours_old("o1");
  const Ended ended = orders.failed({"list"});
  CHECK(ended.status == 0);
  CHECK(ended.out.starts_with("CONSUMER  BUSINESS KEY  STATE   ATTEMPTS  FIRST  "));
  CHECK(ended.out.find("\norders    o22           parked         1  ") != std::string::npos);
  CHECK(ended.out.find("\norders    o1            parked         1     3h  ") != std::string::npos);
  CHECK(ended.out.find("o22") < ended.out.find("o1 "));
  CHECK(ended.err.empty());
}

TEST_CASE("list chooses by consumer, key, state and age, and says when there is more") {
  const FailedOrders orders;
  orders.consume(FailedOrders::bad(1) + FailedOrders::bad(2));
  orders.consume(FailedOrders::bad(3), {"--max-attempts", "1"});
  orders.make_three_hours_old("o1");
  CHECK(orders.list().size() == 3);
  CHECK(orders.list({"--consumer", "orders"}).size() == 3);
  CHECK(orders.list({"--consumer", "other"}).empty());
  CHECK(orders.list({"--state", "failing"}).size() == 2);
  CHECK(orders.list({"--state", "parked"}).at(0).at("business_key") == "o3");
  CHECK(orders.list({"--older-than", "1h"}).at(0).at("business_key") == "o1");
  CHECK(orders.list({"--older-than", "4h"}).empty());
  CHECK(orders.list({"o2"}).size() == 1);
  CHECK(orders.list({"--limit", "2"}).size() == 2);
  CHECK(orders.failed({"list", "--limit", "2"}).err == "txinbox: there are more than 2; --limit shows more\n");
  CHECK(orders.failed({"list", "--limit", "3"}).err.empty());
  CHECK(orders.failed({"list", "o4"}).status == 1);
}

TEST_CASE("the line of a message that failed is kept with --keep-payload only, and comes back byte for byte") {
  const FailedOrders orders;
  std::string line = FailedOrders::bad(1);
  line.pop_back();
  orders.consume(line + "\n" + FailedOrders::bad(2), {"--keep-payload"});
  orders.consume(FailedOrders::bad(3));
  const Ended kept = orders.failed({"list", "--payload", "--consumer", "orders", "o1"});
  CHECK(kept.status == 0);
  CHECK(kept.out == line);
  CHECK(kept.err.empty());
  const Ended none = orders.failed({"list", "--payload", "--consumer", "orders", "o3"});
  CHECK(none.status == 1);
  CHECK(none.out.empty());
  CHECK(none.err.find("--keep-payload") != std::string::npos);
  CHECK(orders.list({"--payload", "--consumer", "orders", "o1"}).at(0).at("payload") == line);
  CHECK(orders.list({"--payload", "--consumer", "orders", "o3"}).at(0).at("payload").is_null());
  CHECK_FALSE(orders.list({"o1"}).at(0).contains("payload"));

  const std::string bytes = on_postgresql() ? "'\\xff00fe61'" : "x'ff00fe61'";
  orders.db.run("update txinbox_failed_message set payload = " + bytes + " where business_key = 'o2'");
  CHECK(orders.failed({"list", "--payload", "--consumer", "orders", "o2"}).out == std::string("\xff\0\xfe\x61", 4));
  const auto binary = orders.list({"--payload", "--consumer", "orders", "o2"}).at(0);
  CHECK(binary.at("payload").is_null());
  CHECK(binary.at("payload_base64") == "/wD+YQ==");
}

TEST_CASE("retry of one key lets its next delivery run, and is status 1 where there is nothing to change") {
  const FailedOrders orders;
  orders.consume(FailedOrders::bad(1), {"--max-attempts", "1"});
  CHECK(counts(orders.consume(Orders::line(1))).find("parked 1") != std::string::npos);
  const Ended retried = orders.failed({"retry", "--consumer", "orders", "o1"});
  CHECK(retried.status == 0);
  CHECK(retried.out == "retried 1 message: the next delivery runs\n");
  CHECK(retried.err.empty());
  CHECK(counts(orders.consume(Orders::line(1))).starts_with("consumed 1"));
  const Ended again = orders.failed({"retry", "--consumer", "orders", "o1"});
  CHECK(again.status == 1);
  CHECK(again.out.empty());
  CHECK_FALSE(again.err.empty());
  CHECK(orders.failed({"retry", "--consumer", "orders", "--json", "o1"}).out == "{\"retried\":0,\"torn\":0}\n");
}

TEST_CASE("retry does not change a torn message and prints what to do") {
  const FailedOrders orders;
  orders.consume(FailedOrders::bad(1) + FailedOrders::bad(2), {"--max-attempts", "1"});
  orders.set_state("o1", "torn");
  const Ended one = orders.failed({"retry", "--consumer", "orders", "o1"});
  CHECK(one.status == 1);
  CHECK(one.err.find("1 message is torn: ") != std::string::npos);
  CHECK(one.err.find("txinbox forget") != std::string::npos);
  const Ended all = orders.failed({"retry", "--all"});
  CHECK(all.status == 0);
  CHECK(all.out == "retried 1 message: the next delivery runs\n");
  CHECK(all.err == one.err);
  CHECK(orders.failed({"retry", "--all", "--json"}).out == "{\"retried\":0,\"torn\":1}\n");
  CHECK(orders.failed({"discard", "--consumer", "orders", "o1"}).status == 0);
}

TEST_CASE("discard is permanent until forget removes the row") {
  const FailedOrders orders;
  orders.consume(FailedOrders::bad(1) + FailedOrders::bad(2), {"--max-attempts", "1"});
  const Ended discarded = orders.failed({"discard", "--all", "--consumer", "orders"});
  CHECK(discarded.status == 0);
  CHECK(discarded.out == "discarded 2 messages: later deliveries are acknowledged and do not run\n");
  const Ended later = orders.consume(Orders::line(1));
  CHECK(later.status == 0);
  CHECK(counts(later).ends_with("discarded 1"));
  CHECK(orders.list().empty());
  CHECK(orders.list({"--state", "discarded"}).size() == 2);
  CHECK(orders.failed({"discard", "--all"}).status == 1);
  const Ended retried = orders.failed({"retry", "--consumer", "orders", "o1"});
  CHECK(retried.status == 1);
  CHECK(retried.err.find("txinbox forget") != std::string::npos);
  CHECK(run({"forget", "--consumer", "orders", "o1"}, orders.db.url()).status == 0);
  CHECK(counts(orders.consume(Orders::line(1))).starts_with("consumed 1"));
}

TEST_CASE("--all changes all messages that the filters choose, in several calls of the library") {
  const FailedOrders orders;
  orders.insert_parked(2'300);
  orders.db.run("update txinbox_consumed_message set state = 'torn' where business_key like 'o1%'");
  const long long torn = orders.db.number("select count(*) from txinbox_consumed_message where state = 'torn'");
  REQUIRE(torn > 1'000);
  const long long left = 2'300 - torn;
  CHECK(orders.failed({"retry", "--all", "--consumer", "nobody"}).status == 1);
  CHECK(orders.failed({"retry", "--all", "--older-than", "1h"}).status == 1);
  CHECK(orders.failed({"retry", "--all", "--state", "failing"}).status == 1);
  CHECK(orders.failed({"retry", "--all", "--json"}).out ==
        "{\"retried\":" + std::to_string(left) + ",\"torn\":1000}\n");
  CHECK(orders.failed({"discard", "--all", "--state", "torn", "--json"}).out ==
        "{\"discarded\":" + std::to_string(torn) + "}\n");
  CHECK(orders.list({"--limit", "5000"}).empty());
}

TEST_CASE("list, retry and discard choose by the class of the last error") {
  const FailedOrders orders;
  orders.insert_parked(4);
  orders.db.run("update txinbox_failed_message set last_error = 'postgresql 23505' where business_key in ('o1', 'o2')");
  orders.db.run("update txinbox_failed_message set last_error = 'it''s' where business_key = 'o3'");
  CHECK(orders.list({"--error-class", "postgresql 23505"}).size() == 2);
  CHECK(orders.list({"--error-class", "postgresql 2350"}).empty());
  CHECK(orders.list({"--error-class", "it's"}).at(0).at("business_key") == "o3");
  CHECK(orders.failed({"retry", "--all", "--error-class", "deadlock"}).status == 1);
  CHECK(orders.failed({"retry", "--all", "--error-class", "postgresql 23505", "--json"}).out ==
        "{\"retried\":2,\"torn\":0}\n");
  CHECK(orders.failed({"discard", "--consumer", "orders", "--error-class", "deadlock", "o3"}).status == 1);
  CHECK(orders.failed({"discard", "--all", "--error-class", "it's", "--json"}).out == "{\"discarded\":1}\n");
  CHECK(orders.list().size() == 1);
  CHECK(orders.list().at(0).at("business_key") == "o0");
  // A message whose failure was not counted has no class.
  orders.db.run("delete from txinbox_failed_message");
  CHECK(orders.failed({"list", "--consumer", "orders", "o0"}).status == 0);
  CHECK(orders.failed({"list", "--consumer", "orders", "--error-class", "deadlock", "o0"}).status == 1);
}

TEST_CASE("the options must choose messages, and an error names the remedy") {
  const FailedOrders orders;
  for (const Command::Arguments& words :
       std::vector<Command::Arguments>{{"failed"},
                                       {"failed", "delete"},
                                       {"failed", "retry"},
                                       {"failed", "discard", "--consumer", "orders"},
                                       {"failed", "retry", "o1"},
                                       {"failed", "retry", "--all", "o1"},
                                       {"failed", "retry", "--all", "--state", "torn"},
                                       {"failed", "list", "--older-than", "1"},
                                       {"failed", "list", "--state", "lost"},
                                       {"failed", "list", "--limit", "0"},
                                       {"failed", "list", "--payload"},
                                       {"failed", "list", "--payload", "o1"}}) {
    const Ended ended = run(words, orders.db.url());
    CHECK(ended.status == 2);
    CHECK(ended.out.empty());
    CHECK(ended.err.starts_with("txinbox: "));
  }
  CHECK(orders.failed({"retry", "o1"}).err.find("needs --consumer NAME") != std::string::npos);
  CHECK(orders.failed({"list", "--older-than", "1"}).err.find("'1' is not a time with its unit") != std::string::npos);
  CHECK(orders.consume("", {"--max-attempts", "-1"}).status == 2);
}

TEST_CASE("redrive --stored adds the payloads that were kept to the outbox") {
  const FailedOrders orders;
  CHECK(orders.consume(FailedOrders::bad(1) + FailedOrders::bad(2), {"--max-attempts", "1", "--keep-payload"}).status ==
        1);
  CHECK(orders.consume(FailedOrders::bad(3), {"--max-attempts", "1"}).status == 1);
  const Command::Arguments words{"redrive", "--stored", "--to", "orders", "--consumer", "orders"};
  const auto with = [&](Command::Arguments more) {
    more.insert(more.begin(), words.begin(), words.end());
    return run(more, orders.db.url());
  };
  CHECK(with({"--dry-run"}).out == "would add 2 to the outbox\n");
  const Ended one = with({"--max", "1", "--json"});
  CHECK(one.status == 1);
  CHECK(one.out == "{\"dry_run\":false,\"added\":1,\"without_payload\":1}\n");
  const Ended rest = with({"--by", "ann", "--audit-reason", "repaired"});
  CHECK(rest.out == "added 1 to the outbox; a relay publishes what is there\n");
  CHECK(rest.err == "txinbox: left 1: their payload is not stored; txinbox consume --keep-payload stores it\n");
  CHECK(orders.db.number("select count(*) from txinbox_outbox_message where aggregatetype = 'orders'") == 2);
  CHECK(with({"--rate", "5"}).status == 2);
  CHECK(run({"redrive", "--stored"}, orders.db.url()).status == 2);
  CHECK(run({"redrive"}, orders.db.url()).status == 2);
}
