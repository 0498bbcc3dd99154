#include "backend/connection_string.hpp"

#include <doctest/doctest.h>

using txinbox::backend::without_values;

TEST_CASE("the value of a URL's parameter is replaced by its name") {
  CHECK(without_values(R"(invalid sslmode value: "S3cr3tPw")", {{"sslmode", "S3cr3tPw"}}) ==
        R"(invalid sslmode value: "[sslmode]")");
  CHECK(without_values("on socket \"/run/db/.s.PGSQL.5432\" failed", {{"host", "/run/db"}}) ==
        "on socket \"[host]/.s.PGSQL.5432\" failed");
  CHECK(without_values("S3cr3tPw", {{"charset", "S3cr3tPw"}}) == "[charset]");
}

TEST_CASE("a short value is replaced where it is quoted, and not in other numbers and words") {
  CHECK(without_values(R"(at "127.0.0.1": invalid integer value "1")", {{"keepalives", "1"}}) ==
        R"(at "127.0.0.1": invalid integer value "[keepalives]")");
  CHECK(without_values("SSL was required", {{"sslmode", "require"}}) == "SSL was required");
}

TEST_CASE("a part of a value that a library extracts is replaced as well") {
  CHECK(without_values(R"(could not translate host name "S3cr3tPw")", {{"host", "a.example,S3cr3tPw"}}) ==
        R"(could not translate host name "[host]")");
  CHECK(without_values(R"(invalid value for parameter "x": "S3cr3tPw")",
                       {{"options", "-c statement_timeout=S3cr3tPw"}}) ==
        R"(invalid value for parameter "x": "[options]")");
}

TEST_CASE("if a value is part of another value, both are replaced completely") {
  CHECK(without_values("\"word S3cr3tPw word\"", {{"sslmode", "word"}, {"sslkey", "word S3cr3tPw word"}}) ==
        "\"[sslkey]\"");
}

TEST_CASE("an empty value changes nothing") { CHECK(without_values("text", {{"sslmode", ""}}) == "text"); }
