// txinbox consume, when its environment fails: a full disk, or a missing table.

#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/orders.hpp"
#include "support/capabilities.hpp"

using namespace txinbox::test;

namespace {

/// After this, the order with this number gets this error of the server.
void fail_at(const Orders& orders, int number, const std::string& code) {
  const std::string no = "'o" + std::to_string(number) + "'";
  if (on_postgresql()) {
    orders.db.run(
        "create function fail() returns trigger language plpgsql as "
        "'begin raise exception using errcode = ''" +
        code + "''; end'");
    orders.db.run("create trigger failing before insert on t_order for each row when (new.no = " + no +
                  ") execute function fail()");
  } else if (on_mysql()) {
    orders.db.run("create trigger failing before insert on t_order for each row if new.no = " + no +
                  " then signal sqlstate 'HY000' set mysql_errno = " + code + "; end if");
  }
}

}  // namespace

TEST_CASE("a full disk ends the run with status 3 at the line of the error, and parks nothing") {
  for (const char* batch : {"1", "100"}) {
    CAPTURE(batch);
    const Orders orders;
    fail_at(orders, 3, on_postgresql() ? "53100" : "1021");
    std::string input;
    for (int i = 1; i <= 1'000; ++i) {
      // On SQLite, the file may not grow any more, and one order is large.
      input += !on_sqlite3() ? Orders::line(i)
                             : R"({"no":"o)" + std::to_string(i) + R"(","sku":")" +
                                   std::string(i == 3 ? 1'000'000 : 1, 'a') + R"(","qty":1})" + "\n";
    }
    const Ended ended = on_sqlite3() ? run({"consume", "--consumer", "orders", "--key", "/no", "--sql",
                                            "pragma max_page_count = 100; insert into t_order values (:no, :sku, :qty)",
                                            "--max-attempts", "1", "--batch", batch},
                                           orders.db.url(), input)
                                     : orders.consume(input, {"--max-attempts", "1", "--batch", batch});
    CAPTURE(ended.err);
    CHECK(ended.status == 3);
    const std::string what = on_sqlite3() ? "line 3: statement 2: SQLite error 13 (the disk is full)"
                             : on_mysql() ? "line 3: statement 1: MariaDB/MySQL error 1021 (the disk is full)"
                                          : "line 3: statement 1: PostgreSQL SQLSTATE 53100 (the disk is full)";
    CHECK(ended.err.find(what) != std::string::npos);
    CHECK(ended.err.find("line 4") == std::string::npos);
    CHECK(orders.orders() == 2);
    CHECK(orders.db.number("select count(*) from txinbox_failed_message") == 0);
    CHECK(orders.db.number("select count(*) from txinbox_consumed_message") == 2);
  }
}

TEST_CASE("a table that is dropped during a run ends the run at the line of the error" *
          doctest::skip(!missing_table_has_own_code())) {
  const Orders orders;
  fail_at(orders, 2, on_postgresql() ? "42P01" : "1146");
  const Ended ended = orders.consume(Orders::line(1) + Orders::line(2) + Orders::line(3), {"--max-attempts", "1"});
  CAPTURE(ended.err);
  CHECK(ended.status == 3);
  CHECK(ended.err.find("line 2: statement 1: ") != std::string::npos);
  CHECK(ended.err.find("line 3") == std::string::npos);
  CHECK(orders.orders() == 1);
  CHECK(orders.db.number("select count(*) from txinbox_failed_message") == 0);
}

TEST_CASE("TXINBOX_FROM means the same as --from") {
  const TestDatabase db(TestDatabase::Tables::none);
  ::setenv("TXINBOX_FROM", "kafka://localhost:1/orders?group=g", 1);
  std::vector<std::string> words = {"consume", "--consumer", "c", "--sql", "select 1", "--key"};
  words.emplace_back("@key");
  const Ended by_record_key = run(words, db.url());
  CHECK(by_record_key.err.find("needs --from") == std::string::npos);
  CHECK(by_record_key.err.find("TXINBOX_FROM is set, so") != std::string::npos);  // standard input is a pipe
  words.back() = "/no";
  words.emplace_back("--stop-on-error");
  const Ended stopping = run(words, db.url());
  CHECK(run({"redrive"}, db.url()).status == 2);  // it is what a service consumes, and no dead letters
  ::unsetenv("TXINBOX_FROM");
  CHECK(stopping.status == 2);
  words = {"consume", "--consumer", "c", "--sql", "select 1", "--key", "@key"};
  CHECK(run(words, db.url()).status == 2);
}
