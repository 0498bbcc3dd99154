#include "base/url.hpp"

#include <doctest/doctest.h>
#include <txinbox/error.hpp>
#include <txinbox/pool.hpp>

#include <string>

namespace txinbox::detail {
namespace {

TEST_CASE("a URL is split and percent-decoded") {
  const Url url =
      parse_url("postgresql://us%40er:p%3Ass%2F@db.example:5433/or%20ders?sslmode=require&options=-c%20a%3Db");
  CHECK(url.scheme == "postgresql");
  CHECK(url.user == "us@er");
  CHECK(url.password == "p:ss/");
  CHECK(url.host == "db.example");
  CHECK(url.port == "5433");
  CHECK(url.path == "or ders");
  REQUIRE(url.parameters.size() == 2);
  CHECK(url.parameters[0] == std::pair<std::string, std::string>("sslmode", "require"));
  CHECK(url.parameters[1] == std::pair<std::string, std::string>("options", "-c a=b"));
}

TEST_CASE("parts that are left out are empty") {
  const Url url = parse_url("mysql://localhost/db");
  CHECK(url.user.empty());
  CHECK(url.password.empty());
  CHECK(url.port.empty());
  CHECK(url.host == "localhost");
  CHECK(parse_url("postgresql:///db").host.empty());
}

TEST_CASE("an IPv6 host stands in brackets") {
  const Url url = parse_url("mysql://u@[::1]:3307/db");
  CHECK(url.host == "::1");
  CHECK(url.port == "3307");
}

TEST_CASE("several hosts have commas between them, each with its port") {
  const auto hosts = [](const char* text) {
    const Url url = parse_url(text);
    return url.host + " " + url.port;
  };
  CHECK(hosts("postgresql://u@h1:1,h2:2/db") == "h1,h2 1,2");
  CHECK(hosts("postgresql://u@h1,[::1]:2,h3/db") == "h1,::1,h3 ,2,");
  CHECK(hosts("postgresql://u@h1,h2/db") == "h1,h2 ");
  CHECK(hosts("postgresql:///db") == " ");
  CHECK_THROWS_AS((void)parse_url("postgresql://u@h1:1,h2:x/db"), Error);
  CHECK_THROWS_AS((void)open_pool("mysql://u@h1,h2/db"), Error);
}

TEST_CASE("a line break in a URL is refused, also at its end") {
  for (const char* text :
       {"sqlite:orders.db\n", "postgresql://u@h/db\r\n", "soci:sqlite3://orders.db\n", "sqlite:a\nb"}) {
    CAPTURE(text);
    CHECK_THROWS_AS((void)parse_url(text), Error);
  }
  CHECK(parse_url("sqlite:a%0Ab").path == "a\nb");
}

TEST_CASE("a file is a path with or without slashes") {
  CHECK(parse_url("sqlite:orders.db").path == "orders.db");
  CHECK(!parse_url("sqlite:orders.db").has_authority);
  CHECK(parse_url("sqlite:///var/lib/orders.db").path == "var/lib/orders.db");
  CHECK(parse_url("sqlite:///var/lib/orders.db").has_authority);
  CHECK(parse_url("sqlite::memory:").path == ":memory:");
  CHECK(parse_url("SQLITE:x%20y.db").path == "x y.db");
}

TEST_CASE("the text after soci: is not decoded") {
  CHECK(parse_url("soci:mysql://db=a%20b user='x'").path == "mysql://db=a%20b user='x'");
}

TEST_CASE("what stands before a colon is repeated only if it can be a scheme") {
  const auto refusal = [](const char* url) -> std::string {
    try {
      (void)open_pool(url, {.connections = 1});
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::invalid_argument);
      return error.what();
    }
    return "";
  };
  CHECK(refusal("oracle://db/orders").find("'oracle'") != std::string::npos);
  const std::string text = refusal("host=db user=svc password=s3:cret");
  CHECK(!text.empty());
  CHECK(text.find("s3") == std::string::npos);
  CHECK(text.find("svc") == std::string::npos);
}

TEST_CASE("a malformed URL is refused, and its text is not repeated") {
  for (const char* text :
       {"", "orders.db", ":x", "mysql://u:secret@host:port/db", "mysql://u:secret@host:0/db",
        "mysql://u:secret@host:70000/db", "mysql://u:secret%zz@host/db", "mysql://u:secret%00@host/db",
        "mysql://u:secret@[::1/db", "mysql://u:secret@h/db?x", "mysql://u:secret@[::1]x:3306/db",
        "mysql://u:secret@h:db:/x", "mysql://u:secret@::1/db", "postgresql://u:secret@h/db?=x",
        "postgresql://u:secret@h/db?a%20b=x", "postgresql://u:secret@h/db?a'=x"}) {
    CAPTURE(text);
    try {
      (void)parse_url(text);
      FAIL("it was taken");
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::invalid_argument);
      CHECK(std::string(e.what()).find("secret") == std::string::npos);
    }
  }
}

TEST_CASE("a password with an unescaped slash or question mark is refused") {
  for (const char* text : {"mysql://u:1/secret@h/db", "mysql://u:1?secret=x@h/db", "postgresql://u:1/@secret@h/db",
                           "postgresql://u:a@b/secret@h/db", "mysql:u:secret@h/db"}) {
    CAPTURE(text);
    try {
      (void)parse_url(text);
      FAIL("it was taken");
    } catch (const Error& e) {
      CHECK(std::string(e.what()).find("secret") == std::string::npos);
    }
  }
  CHECK(parse_url("postgresql://h/d%40b?options=%40").path == "d@b");
  CHECK(parse_url("sqlite:///var/a@b.db", UrlKind::file).path == "var/a@b.db");
  CHECK(parse_url("mysql://u:p@ss@h/db").password == "p@ss");
}

TEST_CASE("a URL that no database accepts is refused, and its password is not repeated") {
  for (const char* text :
       {"oracle://u:secret@host/db", "sqlite://u:secret@host/db", "sqlite:", "sqlite:a.db?password=secret",
        "mysql://u:secret@host", "mysql://u:secret@127.0.0.1:1/db?unknown=1", "soci:nothing", "soci:nosuch://db=x"}) {
    CAPTURE(text);
    try {
      auto pool = open_pool(text);
      FAIL("it was taken");
    } catch (const Error& e) {
      CHECK((e.code() == ErrorCode::invalid_argument || e.code() == ErrorCode::unsupported_database));
      CHECK(std::string(e.what()).find("secret") == std::string::npos);
    }
  }
}

TEST_CASE("an error about an unreachable server does not contain the password") {
  for (const char* text : {"mysql://u:secret@127.0.0.1:1/db", "postgresql://u:secret@127.0.0.1:1/db"}) {
    CAPTURE(text);
    try {
      auto pool = open_pool(text);
      FAIL("it was opened");
    } catch (const std::exception& e) {
      CHECK(std::string(e.what()).find("secret") == std::string::npos);
    }
  }
}

}  // namespace
}  // namespace txinbox::detail
