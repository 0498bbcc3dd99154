#include <string>

#include <doctest/doctest.h>

#include "base/text.hpp"
#include "cli/consume/broker_run.hpp"
#include "cli/consume/report.hpp"
#include "console/database_option.hpp"
#include "console/output.hpp"
#include "console/progress.hpp"
#include "console/table.hpp"
#include "console/utf8.hpp"

using namespace txinbox::cli;

TEST_CASE("a password is found in each part of a URL") {
  for (const char* url : {"mysql://u:p@h/db",
                          "mariadb://u:p%40x@h",
                          "postgresql://u:p@h:5432/db",
                          "postgresql://u:p/w@h/db",
                          "postgresql://h/db?password=x",
                          "postgresql://h/db?sslmode=require&password=x",
                          "mysql://h/db?%70assword=x",
                          "mysql://h/db?PASSWORD=x",
                          "mysql://h/db?password=;x",
                          "postgresql://h/db?password=%26x",
                          "postgresql://h/db?password=&password=x",
                          "postgresql://h/db?password= ",
                          "postgresql://h/db?sslpassword=x",
                          "soci:mysql://db=x user=u password=y",
                          "soci:mysql://db=x pass='y z'",
                          "soci:mysql://db=x passwd=y",
                          "soci:postgresql://dbname=x password = 'y'",
                          "soci:postgresql://postgresql://u:p@h/db",
                          "SOCI:mysql://db=x password=y",
                          "MySQL://u:p@h/db"}) {
    CAPTURE(url);
    CHECK(holds_password(url));
    CHECK(is_url_with_password(url));
    CHECK(is_url_with_password(std::string("--db=") + url));
  }
}

TEST_CASE("a URL without a password is accepted") {
  for (const char* url :
       {"sqlite:orders.db", "sqlite:///a:b@c.db", "mysql://u@h:3306/db", "mysql://u:@h/db", "postgresql://h:5432/db",
        "postgresql://h/db?passfile=/x&sslmode=require", "postgresql://h/db?password=", "mysql://h/password=db",
        "soci:mysql://db=x user=u", "soci:postgresql://dbname=bypass user=password"}) {
    CAPTURE(url);
    CHECK_FALSE(holds_password(url));
  }
  CHECK_FALSE(is_url_with_password("update t set password=:p"));
  CHECK_FALSE(is_url_with_password("coupon:{/a}:{/b}@"));
}

TEST_CASE("control characters never reach the terminal") {
  CHECK(printable("a\x1b[31mb\n\t\x7f\xc2\x9b"
                  "é\xff") == "a\\x1b[31mb\\x0a\\x09\\x7f\\xc2\\x9bé\\xff");
  CHECK(printable("a\xe2\x80\xae"
                  "b\xe2\x81\xa6\xd8\x9c") == "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6\\xd8\\x9c");
  CHECK(printable("\xe2\x82\xac \xe2\x80\x93") == "\xe2\x82\xac \xe2\x80\x93");
  CHECK(text_or_hex("two\nlines é") == "two\nlines é");
  CHECK(text_or_hex("HTTP/1.1 201 \r\n\r\n{}") == "HTTP/1.1 201 \n\n{}");
  CHECK(text_or_hex("a\rb") == "0x610d62");
  CHECK(text_or_hex("\u202e") == "0xe280ae");
  CHECK(text_or_hex("a\x1b") == "0x611b");
  CHECK(text_or_hex("\xff") == "0xff");
  CHECK(text_or_hex("").empty());
}

TEST_CASE("an id of a producer and a text of the broker are one line") {
  CHECK(problem_text("a\nb\x1b[2J\xff", "refused\r\nby it") == "a\\x0ab\\x1b[2J\\xff: refused by it");
}

TEST_CASE("a table's columns line up, by characters and not by bytes") {
  CHECK(format_table({{"A", "N"}, {"é", "10"}, {"xyz", "7"}}, {false, true}) == "A     N\né    10\nxyz   7");
}

TEST_CASE("a table that is too wide is cut, wrapped or folded, but numbers never are") {
  const TableRows rows{{"KEY", "COUNT", "ERROR"}, {"éééééééééééé", "1234567890", "some text of words"}};
  const std::vector<bool> right{false, true};
  CHECK(format_table(rows, right, {.columns = 44}) == format_table(rows, right));
  CHECK(format_table(rows, right, {.columns = 37}) ==
        "KEY                COUNT  ERROR\néééééééééééé  1234567890  some…words");
  CHECK(format_table(rows, right, {.columns = 37, .how = Narrow::wrap}) ==
        "KEY                COUNT  ERROR\néééééééééééé  1234567890  some text\n                          of words");
  CHECK(format_table(rows, right, {.columns = 30, .how = Narrow::fold}) ==
        "KEY              COUNT\nééééé…éééé  1234567890\n\nKEY         ERROR\nééééé…éééé  some text of words");
  // Keys that have the same begin stay different.
  CHECK(format_table({{"KEY"}, {"order-service-17"}, {"order-service-18"}}, {}, {.columns = 9}) ==
        "KEY\norde…e-17\norde…e-18");
  // A column keeps a least width, so that it can be read.
  CHECK(format_table(rows, right, {.columns = 5}) == "KEY            COUNT  ERROR\néééé…ééé  1234567890  some…rds");
  CHECK(format_table({{"A"}, {"a\nb"}}, {}, {.columns = 80, .how = Narrow::wrap}) == "A\na\\x0ab");
  CHECK(format_table({{"A"}, {"abcdefghijkl mn"}}, {}, {.columns = 8, .how = Narrow::wrap}) == "A\nabcdefgh\nijkl mn");
}

TEST_CASE("the progress shows the share and the remaining time, if they are known") {
  using namespace std::chrono_literals;
  CHECK(share_and_time_left({.done = 5, .all = 0}, 10s).empty());
  CHECK(share_and_time_left({.done = 0, .all = 100}, 10s) == ", 0 %");
  CHECK(share_and_time_left({.done = 30, .all = 100}, 500ms) == ", 30 %");
  CHECK(share_and_time_left({.done = 25, .all = 100}, 30s) == ", 25 %, 1m30s left");
  CHECK(share_and_time_left({.done = 999, .all = 1000}, 2s) == ", 99 %, 1s left");
  CHECK(share_and_time_left({.done = 100, .all = 100}, 10s) == ", 100 %, 0s left");
  CHECK(share_and_time_left({.done = 120, .all = 100}, 10s) == ", 100 %, 0s left");  // it has grown
}

TEST_CASE("an error is one line, whatever the database says") {
  CHECK(txinbox::detail::one_line("cannot connect.\nserver says no\r\n\n") == "cannot connect. server says no");
  CHECK(txinbox::detail::one_line("").empty());
}

TEST_CASE("the summary gives counts, rate, and where it stopped") {
  const Tally tally{.consumed = 10'000, .already_consumed = 2'000, .conflicts = 0, .parked = 1, .failed = 2};
  CHECK(summary(tally, std::chrono::seconds(2), {}) ==
        "consumed 10000, already consumed 2000, conflicts 0, parked 1, failed 2  (6,001 messages/s)");
  CHECK(summary({}, std::chrono::seconds(1), 7) ==
        "consumed 0, already consumed 0, conflicts 0, parked 0, failed 0  (0 messages/s)  stopped: last line handled "
        "7, go on "
        "at line 8");
  CHECK(summary({}, std::chrono::seconds(1), 0).ends_with("  stopped: no line is handled, go on at line 1"));
  CHECK(grouped(0) == "0");
  CHECK(grouped(1'234'567) == "1,234,567");
}
