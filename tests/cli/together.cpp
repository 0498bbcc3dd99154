// Where the database supports it, one round trip has the statements of a whole batch. The output and the rows must be
// the same as with --batch 1.

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/orders.hpp"
#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/proxy.hpp"
#include "support/source_files.hpp"

using namespace txinbox::test;

namespace {

struct Left {
  int status;
  std::string counts;
  std::string err;
  std::string rows;

  friend bool operator==(const Left&, const Left&) = default;
};

std::string rows_of(const Orders& orders, const std::string& table) {
  const std::string rows = on_postgresql() ? "select coalesce(string_agg(r, ',' order by r), '') from "
                           : on_mysql()    ? "select coalesce(group_concat(r order by r), '') from "
                                           : "select coalesce(group_concat(r), '') from ";
  return orders.db.text(rows + "(select r from " + table + " order by r) t");
}

/// `sql` writes into t(r).
Left consume(const std::string& sql, const std::string& input, const std::string& batch, const std::string& before = {},
             const Command::Arguments& more = {}) {
  const Orders orders;
  orders.db.run("create table t (r varchar(200))");
  orders.db.run("create table t_other (r varchar(200) primary key, n integer)");
  orders.db.run("insert into t_other values ('x', 0)");
  if (!before.empty()) orders.db.run(before);
  Command::Arguments words{"consume", "--consumer", "c", "--key", "/no", "--batch", batch, "--sql", sql};
  words.insert(words.end(), more.begin(), more.end());
  const Ended ended = run(words, orders.db.url(), input);
  return {ended.status, counts(ended), ended.err, rows_of(orders, "t")};
}

std::string line(int number, const std::string& value) {
  return fmt::format(R"({{"no":{},"v":{}}})"
                     "\n",
                     number, value);
}

/// The output is the same with any size of the batch. Returns it.
Left same_in_batches(const std::string& sql, const std::string& input, const std::string& before = {},
                     const Command::Arguments& more = {}) {
  const Left single = consume(sql, input, "1", before, more);
  for (const char* batch : {"3", "100", "10000"}) {
    CAPTURE(batch);
    const Left batched = consume(sql, input, batch, before, more);
    CHECK(batched.counts == single.counts);
    CHECK(batched.err == single.err);
    CHECK(batched.rows == single.rows);
    CHECK(batched == single);
  }
  return single;
}

/// An expression's text between bars, so that white space is visible.
std::string shown(const std::string& expression) {
  const std::string text = on_mysql() ? "cast(" + expression + " as char)" : "cast(" + expression + " as varchar(150))";
  return on_mysql() ? "concat('|', coalesce(" + text + ", 'NULL'), '|')"
                    : "'|' || coalesce(" + text + ", 'NULL') || '|'";
}

}  // namespace

TEST_CASE("a value means the same in a batch as alone") {
  std::string input;
  int number = 0;
  for (const char* value : {"null",
                            "true",
                            "false",
                            "0",
                            "-7",
                            "9223372036854775807",
                            "1.50",
                            "1e3",
                            "\"\"",
                            "\"a b\"",
                            R"("'); delete from t; --")",
                            R"("\\")",
                            R"("\\'")",
                            R"("a;b")",
                            R"("/* c */")",
                            R"("%s {} $1 ?1 :v")",
                            R"("ä€")",
                            R"("\n\t\r")",
                            R"({"a":[1,"'"]})",
                            "[]"}) {
    input += line(++number, value);
  }
  const Left left = same_in_batches("insert into t values (" + shown(":v") + ")", input);
  CHECK(left.counts == "consumed 20, already consumed 0, conflicts 0, parked 0, failed 0");
  CHECK(left.rows.find("|'); delete from t; --|") != std::string::npos);
}

TEST_CASE("the statements of the messages run in their order") {
  std::string input;
  for (int i = 1; i <= 50; ++i) input += line(i, std::to_string(i));
  // Each message records the row of the message before it.
  const Left left = same_in_batches(
      "insert into t select " + shown("n") + " from t_other; update t_other set n = n + :v where r = 'x'", input);
  CHECK(left.counts == "consumed 50, already consumed 0, conflicts 0, parked 0, failed 0");
  CHECK(left.rows.find("|1225|") != std::string::npos);
}

TEST_CASE("lines that fail in a batch are reported with their statement, as without a batch") {
  std::string input;
  for (int i = 1; i <= 40; ++i) input += line(i % 17, i % 13 == 0 ? "\"x\"" : fmt::format("\"k{}\"", i));
  const Left left = same_in_batches("insert into t values (:no); insert into t_other values (:v, 1)", input);
  CHECK(left.status == 1);
  CHECK(left.err.find("line 13: statement 2: ") == 0);
  CHECK(left.err.find("\nline 30: ") == left.err.npos);  // the key of line 13 comes again, in a valid line
  const Left stopped =
      same_in_batches("insert into t values (:no); insert into t_other values (:v, 1)", input, {}, {"--stop-on-error"});
  CHECK(stopped.counts == "consumed 12, already consumed 0, conflicts 0, parked 0, failed 1");
}

TEST_CASE("SELECTs, semicolons in strings and comments with code may stand in a batch") {
  std::string input;
  for (int i = 1; i <= 5; ++i) input += line(i, std::to_string(i));
  for (const std::string& sql : std::vector<std::string>{
           "select * from t_other; insert into t values (:no)", "insert into t values (';'); select n from t_other",
           "insert into t values (';;' ); insert into t values ('a')",
           on_mysql() ? "insert /*! high_priority */ into t values (:no)" : "insert into t values (:no)",
           "with w as (select n from t_other) select * from w; insert into t values (:no)"}) {
    CAPTURE(sql);
    CHECK(same_in_batches(sql, input).counts == "consumed 5, already consumed 0, conflicts 0, parked 0, failed 0");
  }
}

TEST_CASE("a comment with code stays one statement in a batch" * doctest::skip(!on_mysql())) {
  const std::string input = line(1, "1") + line(2, "2") + line(3, "3");
  const Left left = same_in_batches("insert into t values (:v) /*! ; delete from t_other */", input);
  CHECK(left.status == 1);
  CHECK(left.counts == "consumed 0, already consumed 0, conflicts 0, parked 0, failed 3");
}

TEST_CASE("a batch of many and long values is consumed" * doctest::skip(on_sqlite3())) {
  const Orders orders;
  orders.db.run(on_postgresql() ? "create table t_note (no varchar(9) primary key, note text)"
                                : "create table t_note (no varchar(9) primary key, note longtext)");
  std::string input;
  for (int i = 0; i < 3000; ++i) input += line(i, "\"" + std::string(i % 100 == 0 ? 70'000 : 100, 'x') + "\"");
  const Ended ended = run({"consume", "--consumer", "c", "--key", "/no", "--batch", "10000", "--sql",
                           "insert into t_note values (:no, :v); update t_note set note = :v where no = :no"},
                          orders.db.url(), input);
  CHECK(counts(ended) == "consumed 3000, already consumed 0, conflicts 0, parked 0, failed 0");
  CHECK(orders.db.number("select sum(length(note)) from t_note") == 30 * 70'000 + 2970 * 100);
}

TEST_CASE("a server that sends much data during a batch does not block the batch" * doctest::skip(!on_postgresql())) {
  const Orders orders;
  orders.db.run("create table t_note (no varchar(9) primary key, note text)");
  orders.db.run(
      "create function talk() returns trigger language plpgsql as "
      "'begin raise warning using message = repeat(''x'', 20000); return new; end'");
  orders.db.run("create trigger talking before insert on t_note for each row execute function talk()");
  std::string input;
  for (int i = 0; i < 1500; ++i) input += line(i, "\"" + std::string(5000, 'x') + "\"");
  const Ended ended = run({"consume", "--consumer", "c", "--key", "/no", "--batch", "10000", "--sql",
                           "insert into t_note values (:no, :v)"},
                          orders.db.url(), input);
  CHECK(counts(ended) == "consumed 1500, already consumed 0, conflicts 0, parked 0, failed 0");
}

TEST_CASE("a batch of lines takes no more round trips than the docs say" * doctest::skip(!has_server())) {
  const Orders orders;
  const std::string server = on_postgresql() ? "PostgreSQL"
                             : on_galera()   ? "MariaDB with Galera"
                             : on_mariadb()  ? "MariaDB"
                                             : "MySQL";
  Proxy proxy(orders.db.url());
  int next = 0;
  const auto round_trips = [&](int lines) {
    std::string input;
    for (int i = 0; i < lines; ++i) input += Orders::line(++next);
    const int before = proxy.round_trips();
    CHECK(run(Orders::arguments(), proxy.url(), input).status == 0);
    return proxy.round_trips() - before;
  };
  // The second batch of a size also prepares its statements.
  const int two = round_trips(200);
  const int three = round_trips(300);
  const std::string row = fmt::format("| {} | {} |\n", server, three - two);
  const std::string docs = source_text("docs/reference/round-trips.md");
  CHECK_MESSAGE(docs.find(row) != std::string::npos, "docs/reference/round-trips.md lacks the row: ", row);
}

TEST_CASE("a connection that is lost while a batch is sent loses no line, and doubles none" *
          doctest::skip(!has_server())) {
  std::string input;
  for (int i = 0; i < 300; ++i) input += Orders::line(i);
  int lost = 0;
  for (int spared = 5; spared < 45; spared += 4) {
    CAPTURE(spared);
    const Orders orders;
    {
      Proxy proxy(orders.db.url());
      proxy.lose_reply(spared);
      (void)run(Orders::arguments(), proxy.url(), input);
      lost += proxy.lost();
    }
    CHECK(orders.consume(input).status == 0);
    CHECK(orders.orders() == 300);
    CHECK(orders.taken() == 300);
  }
  CHECK(lost > 0);
}
