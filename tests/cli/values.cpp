#include <string>

#include <doctest/doctest.h>

#include "cli/orders.hpp"

using namespace txinbox::test;

namespace {

// A table with a column for each kind of JSON value.
std::string create_values() {
  if (on_sqlite3()) return "create table v (k text, i integer, n, f, b integer, s text, doc text, whole text)";
  if (on_mysql()) {
    return "create table v (k varchar(99), i bigint, n decimal(40,0), f decimal(30,20), b boolean, s varbinary(999), "
           "doc text, whole text) character set utf8mb4";
  }
  return "create table v (k text, i bigint, n numeric, f numeric, b boolean, s text, doc text, whole text)";
}

Ended insert(const TestDatabase& db, const std::string& input) {
  return run({"consume", "--consumer", "c", "--key", "/k", "--bind", "doc=/nested/doc", "--bind", "whole=", "--sql",
              "insert into v (k, i, n, f, b, s, doc, whole) values (:k, :i, :n, :f, :b, :s, :doc, :whole)"},
             db.url(), input);
}

}  // namespace

TEST_CASE("every kind of JSON value arrives in the SQL unharmed") {
  const TestDatabase db;
  db.run(create_values());
  const std::string first =
      R"({"k":"max", "i":9223372036854775807, "n":123456789012345678901234567890, "f":0.1234567890123456789,)"
      R"( "b":true, "s":"it's \"é\" \\ 😀", "nested":{"doc":{"a":[1.50,null,{"b":"x\ny"}]}}})";
  const std::string second =
      R"({"k":"min","i":-9223372036854775808,"n":18446744073709551615,"f":2.5,"b":false,"s":"","nested":{"doc":[]}})";
  const std::string third = R"({"k":"null","i":null,"n":null,"f":null,"b":null,"s":null,"nested":{"doc":null}})";
  const Ended ended = insert(db, first + "\n" + second + "\r\n" + third);
  CHECK(ended.err.empty());
  CHECK(counts(ended) == "consumed 3, already consumed 0, conflicts 0, parked 0, failed 0");

  const std::string text = on_mysql() ? "char" : "text";
  auto value = [&](const char* column, const char* key) {
    return db.text(std::string("select cast(") + column + " as " + text + ") from v where k = '" + key + "'");
  };
  CHECK(value("i", "max") == "9223372036854775807");
  CHECK(value("i", "min") == "-9223372036854775808");
  CHECK(value("n", "max") == "123456789012345678901234567890");
  CHECK(value("n", "min") == "18446744073709551615");
  CHECK(value("f", "max").starts_with(on_sqlite3() ? "0.12345678901234" : "0.1234567890123456789"));
  CHECK(db.number("select count(*) from v where f = 2.5") == 1);
  CHECK(db.text("select k from v where b") == "max");
  CHECK(db.text("select k from v where not b") == "min");
  CHECK(db.text("select s from v where k = 'max'") == "it's \"é\" \\ 😀");
  CHECK(db.text("select s from v where k = 'min'").empty());
  CHECK(value("doc", "max") == R"({"a":[1.50,null,{"b":"x\ny"}]})");
  CHECK(value("doc", "min") == "[]");
  CHECK(value("whole", "max") == first);
  CHECK(value("whole", "min") == second);
  CHECK(db.number("select count(*) from v where k = 'null' and i is null and n is null and f is null and b is null "
                  "and s is null and doc is null") == 1);
}

TEST_CASE("integers stay integers on SQLite, and floats become reals" * doctest::skip(!on_sqlite3())) {
  const TestDatabase db;
  db.run("create table v (k, i, f)");
  run({"consume", "--consumer", "c", "--key", "/k", "--sql", "insert into v values (:k, :i, :f)"}, db.url(),
      R"({"k":"1","i":1,"f":1.0})");
  CHECK(db.text("select typeof(i) || typeof(f) || typeof(k) from v") == "integerrealtext");
}

TEST_CASE("SQL in a value stays a value") {
  const Orders orders;
  for (const char* evil : {R"('); drop table t_order; --)", R"(\\'); drop table t_order; --)", R"(:sku)", R"(x'||'y)",
                           R"(\" or \"1\"=\"1)", R"($$; drop table t_order; $$)"}) {
    const Ended ended = orders.consume(std::string(R"({"no":")") + evil + R"(","sku":")" + evil + R"(","qty":1})");
    CHECK(counts(ended) == "consumed 1, already consumed 0, conflicts 0, parked 0, failed 0");
  }
  CHECK(orders.orders() == 6);
  CHECK(orders.db.text("select sku from t_order where no = 'x''||''y'") == "x'||'y");
  CHECK(orders.db.text("select sku from t_order where no like ':%'") == ":sku");
  CHECK(orders.taken() == 0);
}

TEST_CASE("text with NUL is stored whole or refused, never cut") {
  const TestDatabase db;
  db.run(create_values());
  const Ended ended =
      insert(db, R"({"k":"nul","i":1,"n":1,"f":1,"b":true,"s":"a\u0000b","nested":{"doc":["\u0000"]}})");
  if (on_postgresql()) {
    CHECK(ended.status == 1);
    CHECK(ended.err == "line 1: :s: PostgreSQL has no text with NUL in it\n");
    CHECK(db.number("select count(*) from v") == 0);
  } else {
    CHECK(ended.status == 0);
    CHECK(db.text("select hex(s) from v") == "610062");
    CHECK(db.text("select doc from v") == R"(["\u0000"])");
  }
}

TEST_CASE("a key with NUL is refused for its line alone") {
  const Orders orders;
  const Ended ended = orders.consume(R"({"no":"a\u0000b","sku":"a","qty":1})"
                                     "\n" +
                                     Orders::line(1));
  CHECK(ended.status == 1);
  CHECK(ended.err.starts_with("line 1: "));
  CHECK(counts(ended) == "consumed 1, already consumed 0, conflicts 0, parked 0, failed 1");
}

TEST_CASE("comments, quotes and colons in the SQL are the database's, not placeholders") {
  const Orders orders;
  std::string sql =
      "-- takes; :nothing 'here\ninsert into t_order(no, sku, qty) /* ; :x ' */ values (:no, 'a:b; ''c', :qty);;\n"
      "update t_inventory set stock = stock - :qty - :qty -- twice\n;";
  if (on_mysql()) sql += "insert into t_order values (concat(:no, '\\':x'), \"it's :y\", 1); # :z ' ;";
  if (on_postgresql()) {
    sql +=
        "insert into t_order values (:no::text || E'\\':x', $$it's :y$$, 1::int); do $f$ declare i int; begin i := 1; "
        "end $f$";
  }
  if (on_sqlite3()) sql += "insert into t_order(\"no\", [sku], `qty`) values (:no || ''':x', 'it''s :y', 1)";
  const Ended ended =
      run({"consume", "--consumer", "c", "--key", "/no", "--sql", sql}, orders.db.url(), Orders::line(1));
  CHECK(ended.err.empty());
  CHECK(ended.status == 0);
  CHECK(orders.db.text("select sku from t_order where no = 'o1'") == "a:b; 'c");
  CHECK(orders.db.text("select sku from t_order where no = 'o1'':x'") == "it's :y");
  CHECK(orders.taken() == 2);
}

TEST_CASE("a SELECT in the SQL is run and its rows are dropped") {
  const Orders orders;
  for (int i = 0; i < 3; ++i) orders.db.run("insert into t_inventory values ('" + std::to_string(i) + "', 1)");
  const Ended ended =
      run({"consume", "--consumer", "c", "--key", "/no", "--sql",
           "select * from t_inventory; select :no; update t_inventory set stock = stock - 1 where sku = 'a'; "
           "select stock from t_inventory"},
          orders.db.url(), Orders::line(1) + Orders::line(2));
  CHECK(ended.status == 0);
  CHECK(orders.taken() == 2);
}

TEST_CASE("one placeholder takes values of other types from line to line") {
  const TestDatabase db;
  db.run(on_sqlite3() ? "create table v (k integer, x, y)"
                      : "create table v (k integer, x varchar(99), y varchar(99))");
  const char* values[] = {"1", "null", "\"1\"", "2.5", "true", "[1]", "18446744073709551615", "\"\"", "null", "-7"};
  std::string input;
  int k = 0;
  for (const char* x : values) {
    for (const char* y : values) {
      input += R"({"k":)" + std::to_string(k++) + R"(,"x":)" + x + R"(,"y":)" + y + "}\n";
    }
  }
  auto contents = [&](const std::string& consumer, const std::string& batch) {
    db.run("delete from v");
    const Ended ended = run({"consume", "--consumer", consumer, "--key", "/k", "--batch", batch, "--sql",
                             "insert into v values (:k, :x, :y)"},
                            db.url(), input);
    CHECK(ended.status == 0);
    const std::string text = on_mysql() ? "char" : "text";
    std::string all;
    for (int i = 0; i < k; ++i) {
      for (const std::string column : {"x", "y"}) {
        all += db.text("select " + (on_sqlite3() ? "typeof(" + column + ") || ' ' || " : std::string()) +
                       "coalesce(cast(" + column + " as " + text + "), 'NULL') from v where k = " + std::to_string(i)) +
               "|";
      }
    }
    return all;
  };
  const std::string single = contents("a", "1");
  CHECK(single.starts_with(on_sqlite3() ? "integer 1|integer 1|integer 1|null NULL|integer 1|text 1|integer 1|real 2.5|"
                                        : "1|1|1|NULL|1|1|1|2.5|"));
  CHECK(contents("b", "7") == single);
  CHECK(contents("c", "1000") == single);
}

TEST_CASE("rows that a statement gives do not disturb the rest of a batch") {
  const Orders orders;
  const std::string returning = on_mysql() ? "" : " returning no";
  const Ended ended =
      run({"consume", "--consumer", "c", "--key", "/no", "--sql",
           "insert into t_order(no, sku, qty) values (:no, :sku, :qty)" + returning +
               "; select no from t_order; update t_inventory set stock = stock - :qty where sku = :sku"},
          orders.db.url(), Orders::line(1) + Orders::line(2) + Orders::line(3) + Orders::line(1));
  CHECK(ended.err.empty());
  CHECK(counts(ended) == "consumed 3, already consumed 1, conflicts 0, parked 0, failed 0");
  CHECK(orders.orders() == 3);
  CHECK(orders.taken() == 3);
}
