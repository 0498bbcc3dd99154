#include <doctest/doctest.h>

#include "cli/orders.hpp"

using namespace txinbox::test;

TEST_CASE("messages delivered several times take effect once, and a second run changes nothing") {
  const Orders orders;
  const std::string stream = Orders::line(1) + Orders::line(2) + Orders::line(1) + Orders::line(3) + Orders::line(2);
  const Ended first = orders.consume(stream);
  CHECK(first.status == 0);
  CHECK(first.err.empty());
  CHECK(counts(first) == "consumed 3, already consumed 2, conflicts 0, parked 0, failed 0");
  CHECK(first.last_line().ends_with(" messages/s)"));
  const Ended second = orders.consume(stream);
  CHECK(second.status == 0);
  CHECK(counts(second) == "consumed 0, already consumed 5, conflicts 0, parked 0, failed 0");
  CHECK(orders.orders() == 3);
  CHECK(orders.taken() == 3);
}

TEST_CASE("consumers with different names consume the same keys independently") {
  const Orders orders;
  orders.consume(Orders::line(1));
  const Ended other = run({"consume", "--consumer", "stock", "--key", "/no", "--sql",
                           "update t_inventory set stock = stock - :qty where sku = :sku"},
                          orders.db.url(), Orders::line(1));
  CHECK(counts(other) == "consumed 1, already consumed 0, conflicts 0, parked 0, failed 0");
  CHECK(orders.taken() == 2);
}

TEST_CASE("an empty input is a success") {
  const Orders orders;
  const Ended ended = orders.consume("");
  CHECK(ended.status == 0);
  CHECK(counts(ended) == "consumed 0, already consumed 0, conflicts 0, parked 0, failed 0");
}

TEST_CASE("a byte order mark, CRLF, empty lines and a missing last line feed do not matter") {
  const Orders orders;
  const Ended ended = orders.consume(
      "\xEF\xBB\xBF{\"no\":\"1\",\"sku\":\"a\",\"qty\":1}\r\n\r\n \n\n"
      "{\"no\":\"2\",\"sku\":\"a\",\"qty\":1}\r\n{\"no\":\"3\",\"sku\":\"a\",\"qty\":1}");
  CHECK(ended.status == 0);
  CHECK(counts(ended) == "consumed 3, already consumed 0, conflicts 0, parked 0, failed 0");
  CHECK(orders.orders() == 3);
}

TEST_CASE("an invalid line is reported with its number, and the other lines are consumed") {
  const Orders orders;
  const Ended ended = orders.consume(Orders::line(1) +                            // 1
                                     "{\"no\":\n"                                 // 2
                                     "{\"sku\":\"a\",\"qty\":1}\n"                // 3
                                     "{\"no\":null,\"sku\":\"a\",\"qty\":1}\n"    // 4
                                     "{\"no\":[1],\"sku\":\"a\",\"qty\":1}\n"     // 5
                                     "{\"no\":\"x\",\"no\":\"y\"}\n"              // 6
                                     "{\"no\":\"\xff\"}\n"                        // 7
                                     "[1]\n"                                      // 8
                                     "{\"no\":\"z\",\"sku\":\"a\"}\n" +           // 9
                                     "{\"no\":\"\",\"sku\":\"a\",\"qty\":1}\n" +  // 10
                                     Orders::line(2));
  CHECK(ended.status == 1);
  for (const char* text :
       {"line 2: malformed JSON at byte 7\n", "line 3: key: there is no /no\n", "line 4: key: /no is null\n",
        "line 5: key: /no is an array\n", "line 6: malformed JSON: an object names one member twice\n",
        "line 7: invalid UTF-8 at byte 8\n", "line 8: the line is JSON, but not an object\n",
        "line 9: :qty: there is no such member (a JSON null gives NULL)\n", "line 10: "}) {
    CAPTURE(text);
    CHECK(ended.err.find(text) != std::string::npos);
  }
  CHECK(ended.err.find("line 1:") == std::string::npos);
  CHECK(counts(ended) == "consumed 2, already consumed 0, conflicts 0, parked 0, failed 9");
  CHECK(orders.orders() == 2);
}

TEST_CASE("with --stop-on-error, no message after the failed one is consumed") {
  const Orders orders;
  const Ended ended = orders.consume(Orders::line(1) + "{}\n" + Orders::line(2), {"--stop-on-error"});
  CHECK(ended.status == 1);
  CHECK(counts(ended) == "consumed 1, already consumed 0, conflicts 0, parked 0, failed 1");
  CHECK(ended.last_line().ends_with("  stopped: last line handled 1, go on at line 2"));
  CHECK(orders.orders() == 1);
}

TEST_CASE("a failed statement leaves no trace, and its message can be consumed once its data is fixed") {
  const Orders orders;
  orders.db.run("insert into t_order values ('o1', 'a', 5)");
  const Ended failed = orders.consume(Orders::line(1) + Orders::line(2));
  CHECK(failed.status == 1);
  CHECK(failed.err.starts_with("line 1: statement 1: "));
  CHECK(failed.err.find("o1") == std::string::npos);
  CHECK(counts(failed) == "consumed 1, already consumed 0, conflicts 0, parked 0, failed 1");
  CHECK(orders.taken() == 1);

  orders.db.run("delete from t_order where no = 'o1'");
  const Ended fixed = orders.consume(Orders::line(1) + Orders::line(2));
  CHECK(fixed.status == 0);
  CHECK(counts(fixed) == "consumed 1, already consumed 1, conflicts 0, parked 0, failed 0");
  CHECK(orders.taken() == 2);
}

TEST_CASE("an error names the database's code and never the values") {
  const Orders orders;
  const std::string input = R"({"no":"secret-key","sku":"secret-sku","qty":1})"
                            "\n";
  orders.db.run("insert into t_order values ('secret-key', 'a', 5)");
  const Ended ended = orders.consume(input, {"--json"});
  const char* code = on_sqlite3() ? "SQLite error "
                     : on_mysql() ? "MariaDB/MySQL error 1062"
                                  : "PostgreSQL SQLSTATE 23505";
  CHECK(ended.err.find(code) != std::string::npos);
  CHECK(ended.err.find("secret") == std::string::npos);
  CHECK(ended.out.find("secret-sku") == std::string::npos);
}

TEST_CASE("with --json each message has a line after its commit, and the last line sums up") {
  const Orders orders;
  const Ended ended = orders.consume(Orders::line(1) + Orders::line(1) + "\n{\"no\":7}\n", {"--json"});
  CHECK(ended.status == 1);
  CHECK(ended.out.starts_with(
      R"({"line":1,"key":"o1","outcome":"consumed"})"
      "\n"
      R"({"line":2,"key":"o1","outcome":"already_consumed"})"
      "\n"
      R"-({"line":4,"key":"7","outcome":"invalid","error":":sku: there is no such member (a JSON null gives NULL)"})-"
      "\n"
      R"({"summary":true,"consumed":1,"already_consumed":1,"conflicts":0,"parked":0,"failed":1,"discarded":0,"seconds":)"));
  CHECK(ended.last_line().ends_with(R"("last_line_handled":null,"go_on_at_line":null})"));
}

TEST_CASE("a message's line is printed as soon as the message has committed") {
  const Orders orders;
  Command command(Orders::arguments({"--json"}), orders.db.url());
  command.write(Orders::line(1));
  CHECK(command.printed(R"({"line":1,"key":"o1","outcome":"consumed"})"));
  CHECK(orders.orders() == 1);
  CHECK(command.wait().status == 0);
}

TEST_CASE("a parked key is reported and not consumed") {
  const Orders orders;
  orders.consume(Orders::line(1));
  orders.db.run("update txinbox_consumed_message set state = 'parked'");
  const Ended ended = orders.consume(Orders::line(1) + Orders::line(2));
  CHECK(ended.status == 1);
  CHECK(ended.err.starts_with("line 1: parked"));
  CHECK(counts(ended) == "consumed 1, already consumed 0, conflicts 0, parked 1, failed 0");
  CHECK(orders.orders() == 2);
}

TEST_CASE("a key that another worker holds counts as failed") {
  const Orders orders;
  orders.consume(Orders::line(1));
  const char* future = on_postgresql() ? "now() + interval '1 hour'" : "'2999-01-01 00:00:00'";
  orders.db.run(std::string("update txinbox_consumed_message set state = 'consuming', lease_owner = 'x', "
                            "lease_fence = 1, lease_expires_at = ") +
                future);
  const Ended ended = orders.consume(Orders::line(1), {"--json"});
  CHECK(ended.status == 1);
  CHECK(ended.err.starts_with("line 1: in progress"));
  CHECK(ended.out.find(R"("outcome":"in_progress")") != std::string::npos);
}

TEST_CASE("a long line is consumed, and a line beyond the limit is skipped and reported") {
  const Orders orders;
  orders.db.run(on_mysql() ? "create table t_note (no varchar(9) primary key, note mediumtext)"
                           : "create table t_note (no varchar(9) primary key, note text)");
  auto line = [](const char* no, std::size_t size) {
    return std::string(R"({"no":")") + no + R"(","note":")" + std::string(size, 'x') + "\"}\n";
  };
  const Ended ended =
      run({"consume", "--consumer", "notes", "--key", "/no", "--sql", "insert into t_note values (:no, :note)"},
          orders.db.url(), line("1", 3'000'000) + line("2", 64UL * 1024 * 1024) + line("3", 1));
  CHECK(ended.status == 1);
  CHECK(ended.err == "line 2: longer than 64 MiB\n");
  CHECK(counts(ended) == "consumed 2, already consumed 0, conflicts 0, parked 0, failed 1");
  CHECK(orders.db.number("select length(note) from t_note where no = '1'") == 3'000'000);
}

TEST_CASE("the key can be a template and the message id is recorded") {
  const Orders orders;
  const Ended ended = run({"consume", "--consumer", "c", "--key", "coupon:{/coupon/id}:{/user}", "--message-id",
                           "/meta/id", "--sql", "update t_inventory set stock = stock - 1"},
                          orders.db.url(),
                          R"({"coupon":{"id":7},"user":"u","meta":{"id":"m-1"}})"
                          "\n"
                          R"({"coupon":{"id":7},"user":"v"})"
                          "\n"
                          R"({"coupon":{"id":7},"user":"u","meta":{"id":"m-2"}})");
  CHECK(counts(ended) == "consumed 2, already consumed 1, conflicts 0, parked 0, failed 0");
  const Ended shown = run({"show", "--consumer", "c", "coupon:7:u"}, orders.db.url());
  CHECK(shown.out.find("m-1") != std::string::npos);
}
