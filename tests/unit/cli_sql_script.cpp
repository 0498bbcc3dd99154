#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/registry.hpp"
#include "cli/sql/sql_script.hpp"
#include "console/usage_error.hpp"

using namespace txinbox::cli;

namespace {

using Strings = std::vector<std::string>;

constexpr const char* sqlite3 = "sqlite3";
constexpr const char* mysql = "mysql";
constexpr const char* postgresql = "postgresql";
constexpr const char* all[] = {sqlite3, mysql, postgresql};

const UserSql& sql_of(const char* database) { return user_sql_of(txinbox::backend::database_named(database)); }

Script parsed(const std::string& sql, const char* database) { return parse_script(sql, sql_of(database)); }

Strings texts_of(const Script& script) {
  Strings texts;
  for (const auto& statement : script.statements) texts.push_back(statement.text);
  return texts;
}

Strings statements(const std::string& sql, const char* database) { return texts_of(parsed(sql, database)); }

Strings names(const std::string& sql, const char* database) {
  Strings names;
  for (const auto& statement : parsed(sql, database).statements) {
    names.insert(names.end(), statement.names.begin(), statement.names.end());
  }
  return names;
}

bool refused(const std::string& sql, const char* database) {
  try {
    parsed(sql, database);
  } catch (const UsageError&) {
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a script is split at semicolons, and its placeholders are found") {
  for (auto database : all) {
    const auto script =
        parsed("insert into t(a, b) values (:a,:b);\n update u set x = x - :b where a=:a or b = :b;; ", database);
    REQUIRE(script.statements.size() == 2);
    CHECK(script.statements[0].text == "insert into t(a, b) values (:a,:b)");
    CHECK(script.statements[0].names == Strings{"a", "b"});
    CHECK(script.statements[1].text == "update u set x = x - :b where a=:a or b = :b");
    CHECK(script.statements[1].names == Strings{"b", "a"});
    CHECK(script.statements[1].sql.pieces == Strings{"update u set x = x - ", " where a=", " or b = ", ""});
    CHECK(script.statements[1].sql.values == std::vector<std::size_t>{1, 0, 1});
    CHECK(script.names == Strings{"a", "b"});
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
  CHECK(statements("select `a;b:c`, [d;e:f], \"g;h:i\", :x", sqlite3) ==
        Strings{"select `a;b:c`, [d;e:f], \"g;h:i\", :x"});
  CHECK(statements("select \"a;b:c\"\"d\", :x", postgresql) == Strings{"select \"a;b:c\"\"d\", :x"});
}

TEST_CASE("comments nest on PostgreSQL alone") {
  CHECK(statements("select 1 /* a /* b */ ; */ + :x", postgresql) == Strings{"select 1 + :x"});
  CHECK(statements("select 1 /* a /* b */ + :x", mysql) == Strings{"select 1 + :x"});
}

TEST_CASE("MySQL's comments and strings are read as MySQL does") {
  CHECK(statements("select 5--1 # ; :x '\n + :y", mysql) == Strings{"select 5--1 + :y"});
  CHECK(statements("select 1 -- it's\n, :x", mysql) == Strings{"select 1 , :x"});
  CHECK(statements(R"(select 'it\'s ; :x', :y)", mysql) == Strings{R"(select 'it\'s ; :x', :y)"});
  CHECK(statements(R"(select "it's ; :x", :y)", mysql) == Strings{R"(select "it's ; :x", :y)"});
  CHECK(statements(R"(select "say ""hi"" :x\"", :y)", mysql) == Strings{R"(select "say ""hi"" :x\"", :y)"});
  CHECK(statements("select @n := @n + :x", mysql) == Strings{"select @n := @n + :x"});
  CHECK(statements("select /*+ NO_INDEX_MERGE(t) */ :x", mysql) == Strings{"select /*+ NO_INDEX_MERGE(t) */ :x"});
  auto syntax = sql_of(mysql).default_syntax();
  syntax.double_quoted_text = false;
  CHECK(texts_of(parse_script("select \"a\\\" = :x", sql_of(mysql), syntax)) == Strings{"select \"a\\\" = :x"});
  syntax.backslash_escapes = false;
  CHECK(texts_of(parse_script("select '\\' ; select :x", sql_of(mysql), syntax)) ==
        Strings{"select '\\'", "select :x"});
}

TEST_CASE("the replacement of a comment does not begin another token") {
  CHECK(statements("select 5--# x\n:y", mysql) == Strings{"select 5--/**/ :y"});
  CHECK(statements("select 5--/* x */:y", mysql) == Strings{"select 5--/**/:y"});
  CHECK(statements("select U&$$a$$, 1$$b$$", postgresql) == Strings{"select U&$$a$$, 1$$b$$"});
  CHECK(statements("$$a$$; select $$$$ $$b$$", postgresql) == Strings{"$$a$$", "select $$$$ $$b$$"});
}

TEST_CASE("PostgreSQL's casts and strings are read as PostgreSQL does") {
  CHECK(statements("select :x::jsonb, 1::int, '1' :: text", postgresql) ==
        Strings{"select :x::jsonb, 1::int, '1' :: text"});
  CHECK(statements("do $$ begin x := 'it'; y := :z; end $$; select :x", postgresql) ==
        Strings{"do $$ begin x := 'it'; y := :z; end $$", "select :x"});
  CHECK(names("do $f$ ; :z $$ $f$; select :x", postgresql) == Strings{"x"});
  CHECK(statements(R"(select $$a\b$$)", postgresql) == Strings{R"(select $$a\b$$)"});
  CHECK(statements(R"(select E'it\'s :x\\', :y)", postgresql) == Strings{R"(select E'it\'s :x\\', :y)"});
  CHECK(statements(R"(select 'a\', :y)", postgresql) == Strings{R"(select 'a\', :y)"});
  CHECK(statements("select a ? 'b' and a @> :x", postgresql) == Strings{"select a ? 'b' and a @> :x"});
}

TEST_CASE("a colon or a quote in a quoted name, a hint or an escaped string is only text") {
  CHECK(names("select `a:b`, :x", mysql) == Strings{"x"});
  CHECK(names("select `it's`, :x", mysql) == Strings{"x"});
  CHECK(names("select /*! :x */ :y", mysql) == Strings{"y"});
  CHECK(names("select /*+ it's */ :y", mysql) == Strings{"y"});
}

TEST_CASE("a colon that begins no name is refused") {
  CHECK(refused("select a[1:2], :x from t", postgresql));
  CHECK(refused("select : x", mysql));
  CHECK(refused("select :1x", sqlite3));
  CHECK(refused("select :na\xc3\xafve", sqlite3));
}

TEST_CASE("a placeholder that nothing would be bound to is refused") {
  for (const char* sql : {"select ?", "select ?1", "select @x", "select $x", "select #x"}) {
    CHECK(refused(sql, sqlite3));
  }
  CHECK(refused("select $1", postgresql));
  CHECK(refused("select ?, :x", mysql));
  CHECK_FALSE(refused("select '?', `?`, :x -- ?", mysql));
}

TEST_CASE("a statement that would end the transaction is refused before it runs") {
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
    CHECK(refused(sql, mysql));
  }
  CHECK_FALSE(refused("create temporary table t(a int)", mysql));
  CHECK(refused("prepare transaction 'x'", postgresql));
  CHECK(refused("copy t from stdin", postgresql));
}

TEST_CASE("a script without a statement, or with an open quote or comment, is refused") {
  for (auto database : all) {
    for (const char* sql : {"", " ;; ", "-- only a comment", "/* x */ ;", "select 'a", "select \"a", "select 1 /* x"}) {
      CAPTURE(sql);
      CHECK(refused(sql, database));
    }
    CHECK(refused(std::string("select 1\0, 2", 12), database));
  }
  CHECK(refused("select $$a", postgresql));
  CHECK(refused("select `a", mysql));
}

TEST_CASE("a refusal names the line of the SQL") {
  CHECK_THROWS_WITH_AS(parsed("select 1;\nselect 2;\ncommit", sqlite3),
                       doctest::Contains("SQL line 3: COMMIT would end the transaction"), UsageError);
}
