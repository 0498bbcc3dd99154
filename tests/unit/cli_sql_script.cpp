#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/sql/sql_script.hpp"
#include "console/usage_error.hpp"

using namespace txinbox::cli;

namespace {

using Strings = std::vector<std::string>;

constexpr Database all[] = {Database::sqlite3, Database::mysql, Database::postgresql};

Strings statements(const std::string& sql, const Dialect& dialect) {
  Strings texts;
  for (const auto& statement : parse_script(sql, dialect).statements) texts.push_back(statement.text);
  return texts;
}

Strings statements(const std::string& sql, Database database) { return statements(sql, default_dialect(database)); }

Strings names(const std::string& sql, Database database) {
  Strings names;
  for (const auto& statement : parse_script(sql, default_dialect(database)).statements) {
    names.insert(names.end(), statement.names.begin(), statement.names.end());
  }
  return names;
}

bool refused(const std::string& sql, Database database) {
  try {
    parse_script(sql, default_dialect(database));
  } catch (const UsageError&) {
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a script is split at semicolons, and its placeholders are found") {
  for (auto database : all) {
    const auto script =
        parse_script("insert into t(a, b) values (:a,:b);\n update u set x = x - :b where a=:a or b = :b;; ",
                     default_dialect(database));
    REQUIRE(script.statements.size() == 2);
    CHECK(script.statements[0].text == "insert into t(a, b) values (:a,:b)");
    CHECK(script.statements[0].names == Strings{"a", "b"});
    CHECK(script.statements[1].text == "update u set x = x - :b where a=:a or b = :b");
    CHECK(script.statements[1].names == Strings{"b", "a"});
    CHECK(script.uses("a"));
    CHECK_FALSE(script.uses("c"));
  }
}

TEST_CASE("semicolons, colons and quotes inside strings and comments are only text") {
  for (auto database : all) {
    CHECK(statements("select 'a;b:c -- '' /*' /* ; :x ' */ , :y -- ; :z '\n + 1", database) ==
          Strings{"select 'a;b:c -- '' /*' , :y + 1"});
    CHECK(names("select 'a;b:c -- '' /*' /* ; :x ' */ , :y -- ; :z '\n + 1", database) == Strings{"y"});
  }
  CHECK(statements("select `a;b:c`, [d;e:f], \"g;h:i\", :x", Database::sqlite3) ==
        Strings{"select `a;b:c`, [d;e:f], \"g;h:i\", :x"});
  CHECK(statements("select \"a;b:c\"\"d\", :x", Database::postgresql) == Strings{"select \"a;b:c\"\"d\", :x"});
}

TEST_CASE("comments nest on PostgreSQL alone") {
  CHECK(statements("select 1 /* a /* b */ ; */ + :x", Database::postgresql) == Strings{"select 1 + :x"});
  CHECK(statements("select 1 /* a /* b */ + :x", Database::mysql) == Strings{"select 1 + :x"});
}

TEST_CASE("MySQL's comments and strings are read as MySQL does") {
  CHECK(statements("select 5--1 # ; :x '\n + :y", Database::mysql) == Strings{"select 5--1 + :y"});
  CHECK(statements("select 1 -- it's\n, :x", Database::mysql) == Strings{"select 1 , :x"});
  CHECK(statements(R"(select 'it\'s ; :x', :y)", Database::mysql) == Strings{R"(select 'it\'s ; :x', :y)"});
  CHECK(statements(R"(select "it's ; :x", :y)", Database::mysql) == Strings{R"(select 'it''s ; :x', :y)"});
  CHECK(statements(R"(select "say ""hi"" :x\"", :y)", Database::mysql) == Strings{R"(select 'say "hi" :x\"', :y)"});
  CHECK(statements("select @n := @n + :x", Database::mysql) == Strings{"select @n := @n + :x"});
  CHECK(statements("select /*+ NO_INDEX_MERGE(t) */ :x", Database::mysql) ==
        Strings{"select /*+ NO_INDEX_MERGE(t) */ :x"});
  Dialect ansi = default_dialect(Database::mysql);
  ansi.ansi_quotes = true;
  CHECK(statements("select \"a\" = :x", ansi) == Strings{"select \"a\" = :x"});
  Dialect plain = default_dialect(Database::mysql);
  plain.backslash_escapes = false;
  CHECK(statements("select '\\' ; select :x", plain) == Strings{"select '\\'", "select :x"});
}

TEST_CASE("what stands in a comment's place begins nothing new") {
  CHECK(statements("select 5--# x\n:y", Database::mysql) == Strings{"select 5--/**/ :y"});
  CHECK(statements("select 5--/* x */:y", Database::mysql) == Strings{"select 5--/**/:y"});
  CHECK(statements("select U&$$a$$, 1$$b$$", Database::postgresql) == Strings{"select U& 'a', 1 'b'"});
  CHECK(statements("$$a$$; select $$$$ $$b$$", Database::postgresql) == Strings{"'a'", "select '' 'b'"});
}

TEST_CASE("PostgreSQL's casts and strings are read as PostgreSQL does") {
  CHECK(statements("select :x::jsonb, 1::int, '1' :: text", Database::postgresql) ==
        Strings{"select :x::jsonb, 1::int, '1' :: text"});
  CHECK(statements("do $$ begin x := 'it'; y := :z; end $$; select :x", Database::postgresql) ==
        Strings{"do ' begin x := ''it''; y := :z; end '", "select :x"});
  CHECK(names("do $f$ ; :z $$ $f$; select :x", Database::postgresql) == Strings{"x"});
  CHECK(statements(R"(select $$a\b$$)", Database::postgresql) == Strings{R"(select E'a\\b')"});
  CHECK(statements(R"(select E'it\'s :x\\', :y)", Database::postgresql) == Strings{R"(select E'it''s :x\\', :y)"});
  CHECK(statements(R"(select 'a\', :y)", Database::postgresql) == Strings{R"(select 'a\', :y)"});
  CHECK(statements("select a ? 'b' and a @> :x", Database::postgresql) == Strings{"select a ? 'b' and a @> :x"});
}

TEST_CASE("a colon that SOCI would take for a placeholder is refused, not passed on") {
  CHECK(refused("select `a:b`, :x", Database::mysql));
  CHECK(refused("select `it's`, :x", Database::mysql));
  CHECK(refused("select /*! :x */ :y", Database::mysql));
  CHECK(refused("select a[1:2], :x from t", Database::postgresql));
  CHECK(refused("select : x", Database::mysql));
  CHECK(refused("select :1x", Database::sqlite3));
  CHECK(refused("select :na\xc3\xafve", Database::sqlite3));
}

TEST_CASE("a placeholder that nothing would be bound to is refused") {
  for (const char* sql : {"select ?", "select ?1", "select @x", "select $x", "select #x"}) {
    CHECK(refused(sql, Database::sqlite3));
  }
  CHECK(refused("select $1", Database::postgresql));
}

TEST_CASE("what would end the transaction is refused up front") {
  for (auto database : all) {
    for (const char* sql : {"begin", "select 1; COMMIT", "rollback", "start transaction", "/* x */ end"}) {
      CAPTURE(sql);
      CHECK(refused(sql, database));
    }
    CHECK_FALSE(refused("savepoint s; insert into t values (:x); rollback to s; release s", database));
    CHECK_FALSE(refused("update t set state = 'end', begin_at = :x", database));
  }
  for (const char* sql : {"set autocommit=1", "SET @@session.autocommit = 1", "xa end 'x'", "create table t(a int)",
                          "truncate t", "lock tables t write", "analyze table t", "flush tables",
                          "execute immediate 'commit'", "set statement max_statement_time=1 for commit"}) {
    CHECK(refused(sql, Database::mysql));
  }
  CHECK_FALSE(refused("create temporary table t(a int)", Database::mysql));
  CHECK(refused("prepare transaction 'x'", Database::postgresql));
  CHECK(refused("copy t from stdin", Database::postgresql));
}

TEST_CASE("a script without a statement, or with an open quote or comment, is refused") {
  for (auto database : all) {
    for (const char* sql : {"", " ;; ", "-- only a comment", "/* x */ ;", "select 'a", "select \"a", "select 1 /* x"}) {
      CAPTURE(sql);
      CHECK(refused(sql, database));
    }
    CHECK(refused(std::string("select 1\0, 2", 12), database));
  }
  CHECK(refused("select $$a", Database::postgresql));
  CHECK(refused("select `a", Database::mysql));
}

TEST_CASE("a refusal names the line of the SQL") {
  CHECK_THROWS_WITH_AS(parse_script("select 1;\nselect 2;\ncommit", default_dialect(Database::sqlite3)),
                       doctest::Contains("SQL line 3: COMMIT would end the transaction"), UsageError);
}
