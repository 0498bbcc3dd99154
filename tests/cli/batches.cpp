#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/orders.hpp"

using namespace txinbox::test;

namespace {

// An order whose second statement fails if its number is in t_seen already.
Ended consume_seen(const Orders& orders, const std::string& input, Command::Arguments more) {
  Command::Arguments words{"consume",
                           "--json",
                           "--consumer",
                           "c",
                           "--key",
                           "/no",
                           "--sql",
                           "insert into t_order(no, sku, qty) values (:no, :sku, :qty); "
                           "insert into t_seen values (:no)"};
  words.insert(words.end(), more.begin(), more.end());
  return run(words, orders.db.url(), input);
}

std::string order(const std::string& no, const std::string& qty = "1") {
  return R"({"no":")" + no + R"(","sku":"a","qty":)" + qty + "}\n";
}

// Orders of a database in which t_seen has s, and in which these keys have rows in these states.
class Mixed {
 public:
  Mixed() {
    orders.db.run("create table t_seen (no varchar(60) primary key)");
    orders.db.run("insert into t_seen values ('seen')");
    consume_seen(orders, order("before") + order("parked") + order("held"), {});
    orders.db.run("update txinbox_consumed_message set state = 'parked' where business_key = 'parked'");
    const std::string future = on_postgresql() ? "now() + interval '1 hour'" : "'2999-01-01 00:00:00'";
    orders.db.run(
        "update txinbox_consumed_message set state = 'consuming', lease_owner = 'x', lease_fence = 1, "
        "lease_expires_at = " +
        future + " where business_key = 'held'");
  }
  Orders orders;
};

// The command's output without the times, and the rows that it left.
struct Left {
  int status;
  std::string out;
  std::string err;
  long long orders;
  std::string last;

  friend bool operator==(const Left&, const Left&) = default;
};

Left outcome(const std::string& input, const Command::Arguments& arguments) {
  const Mixed mixed;
  const Ended ended = consume_seen(mixed.orders, input, arguments);
  std::string out = ended.out;
  const auto seconds = out.find("\"seconds\"");
  const auto behind = out.find("\"last_line_handled\"");
  REQUIRE(seconds != std::string::npos);
  REQUIRE(behind != std::string::npos);
  out.erase(seconds, behind - seconds);
  CHECK(mixed.orders.db.number("select count(*) from t_order") + 1 ==
        mixed.orders.db.number("select count(*) from t_seen"));
  return {ended.status, out, ended.err, mixed.orders.orders(),
          mixed.orders.db.text("select max(no) from t_order where no like 'n%'")};
}

}  // namespace

TEST_CASE("a batch of any size has the same result as one message at a time") {
  const std::string stream = order("n1") + order("before") + "\n" + order("n2") + order("n1") + "{\"no\":\n" +  // 6
                             order("seen") + order("n3", "null") + order("n3") + order("n4") +                  // 10
                             "{\"no\":\"n5\"}\n" + order("parked") + order("held") + order("") + " \n" +        // 15
                             order("n5") + order("seen") + order("n6") + order("n6") + "[]\n" + order("n7") + "\n\n";
  const Left single = outcome(stream, {"--batch", "1"});
  CHECK(single.status == 1);
  CHECK(single.orders == 3 + 7);
  CHECK(single.err.find("line 6: malformed JSON") == 0);
  CHECK(single.err.find("\nline 7: statement 2: ") != std::string::npos);
  CHECK(single.err.find("\nline 8: statement 1: ") != std::string::npos);
  CHECK(single.out.find(R"({"line":9,"key":"n3","outcome":"consumed"})") != std::string::npos);
  for (const std::string& size : std::vector<std::string>{"2", "3", "5", "8", "100", "10000"}) {
    CAPTURE(size);
    const Left batched = outcome(stream, {"--batch", size});
    CHECK(batched.out == single.out);
    CHECK(batched.err == single.err);
    CHECK(batched == single);
  }
}

TEST_CASE("with --max-attempts 1, copies of a failing key run once, in a batch of any size") {
  const std::string bad = order("n4", "null");
  const std::string stream = bad + order("n1") + bad + bad + order("n1") + order("n2");
  const Left single = outcome(stream, {"--max-attempts", "1", "--batch", "1"});
  CHECK(single.status == 1);
  CHECK(single.orders == 3 + 2);
  CHECK(single.err.find("line 1: statement 1: ") == 0);
  CHECK(single.err.find("line 3: statement") == std::string::npos);  // it is parked by now
  for (const std::string& size : std::vector<std::string>{"2", "3", "100"}) {
    CAPTURE(size);
    CHECK(outcome(stream, {"--max-attempts", "1", "--batch", size}) == single);
  }
}

TEST_CASE("with --stop-on-error, no message of a batch is consumed after the line that stops the run") {
  const std::string before = order("n1") + order("before") + order("n2") + order("n1") + order("n3");
  for (const std::string& bad :
       {order("seen"), order("n4", "null"), std::string("{}\n"), order("parked"), order("held"), order("")}) {
    CAPTURE(bad);
    const std::string stream = before + bad + "\n" + order("n8") + order("n9");
    const Left single = outcome(stream, {"--stop-on-error", "--batch", "1"});
    CHECK(single.status == 1);
    CHECK(single.orders == 3 + 3);
    CHECK(single.last == "n3");
    CHECK(single.out.find("\"last_line_handled\":5,\"go_on_at_line\":6}") != std::string::npos);
    for (const std::string& size : std::vector<std::string>{"2", "4", "100"}) {
      CAPTURE(size);
      const Left batched = outcome(stream, {"--stop-on-error", "--batch", size});
      CHECK(batched.out == single.out);
      CHECK(batched.err == single.err);
      CHECK(batched == single);
    }
  }
}

TEST_CASE("duplicates among the lines do not stop a run with --stop-on-error") {
  const std::string stream = order("before") + order("n1") + order("before") + order("n2") + order("n2") + order("n3");
  const Left batched = outcome(stream, {"--stop-on-error"});
  CHECK(batched.status == 0);
  CHECK(batched.orders == 3 + 3);
  CHECK(batched == outcome(stream, {"--stop-on-error", "--batch", "1"}));
}

TEST_CASE("a message does not wait for a full batch, nor for an incomplete line after it") {
  const Orders orders;
  Command command(Orders::arguments({"--json", "--batch", "1000"}), orders.db.url());
  const std::string third = Orders::line(3);
  command.write(Orders::line(1) + Orders::line(2) + third.substr(0, 9));
  CHECK(command.printed(R"({"line":2,"key":"o2","outcome":"consumed"})"));
  CHECK(orders.orders() == 2);
  command.write(third.substr(9));
  CHECK(command.printed(R"({"line":3,"key":"o3","outcome":"consumed"})"));
  CHECK(orders.orders() == 3);
  command.write(Orders::line(4).substr(0, 9));
  const Ended ended = command.wait();
  CHECK(ended.status == 1);
  CHECK(ended.err.starts_with("line 4: malformed JSON"));
}

TEST_CASE("lines that arrive together are one transaction, up to --batch lines") {
  const Orders orders;
  std::string stream;
  for (int i = 0; i < 10; ++i) stream += Orders::line(i);
  auto transactions = [&](const std::string& consumer, const std::string& size) {
    const Ended ended = run({"consume", "--consumer", consumer, "--key", "/no", "--batch", size, "--sql",
                             "update t_inventory set stock = stock - :qty where sku = :sku"},
                            orders.db.url(), stream);
    CHECK(ended.status == 0);
    return orders.db.number("select count(distinct attempt_token) from txinbox_consumed_message where consumer = '" +
                            consumer + "'");
  };
  CHECK(transactions("a", "1") == 10);
  CHECK(transactions("b", "5") == 2);
  CHECK(transactions("c", "100") == 1);
}

TEST_CASE("failed statements do not stay prepared on the server" * doctest::skip(!on_postgresql())) {
  const Orders orders;
  orders.db.run("create table t_count (no varchar(60), statements integer)");
  std::string stream;
  for (int i = 0; i < 40; ++i) stream += order("bad" + std::to_string(i), "null") + order("n" + std::to_string(i));
  for (const std::string& size : std::vector<std::string>{"1", "100"}) {
    const Ended ended = run({"consume", "--consumer", "c" + size, "--key", "/no", "--batch", size, "--sql",
                             "insert into t_count select :no, count(*) from pg_prepared_statements "
                             "where name not like 'txinbox%'; "
                             "insert into t_order(no, sku, qty) values (:no || '/" +
                                 size + "', :sku, :qty)"},
                            orders.db.url(), stream);
    CHECK(counts(ended) == "consumed 40, already consumed 0, conflicts 0, parked 0, failed 40");
  }
  const auto most = orders.db.number("select max(statements) from t_count");
  CHECK(most >= 1);
  CHECK(most <= 2);
}
