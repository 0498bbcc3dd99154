// All parts of a URL of PostgreSQL reach the server unchanged.

#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "base/url.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

std::string setting(const std::string& url, const std::string& name) {
  Pool pool = open_pool(url, {.connections = 1});
  std::string value;
  const Connection connection = pool.acquire();
  connection.session() << "select current_setting('" + name + "')", soci::into(value);
  return value;
}

/// The URL with one more parameter.
std::string with(const std::string& url, const std::string& parameter) {
  return url + (url.find('?') == std::string::npos ? '?' : '&') + parameter;
}

TEST_CASE("blanks, quotes and backslashes in a value of the URL reach the server" * doctest::skip(!on_postgresql())) {
  const TestDatabase db(TestDatabase::Tables::none);
  CHECK(setting(with(db.url(), "application_name=a%20%20b%20%5C%20'c'%20%22d%22"), "application_name") ==
        "a  b \\ 'c' \"d\"");
  const auto question = db.url().find('?');
  const std::string bare = db.url().substr(0, question);
  CHECK(setting(with(bare, "options=-c%20search_path%3D%22Order%5C%20%5C%20Svc%22"), "search_path") ==
        "\"Order  Svc\"");
}

TEST_CASE("a password of blanks, tabs, quotes and backslashes is taken" * doctest::skip(!on_postgresql())) {
  const TestDatabase db(TestDatabase::Tables::none);
  db.run("create role wicked_password login password 'a  b\t\\ ''%\"='");
  std::string url = db.url();
  url.replace(0, url.find('@'), "postgresql://wicked_password:a%20%20b%09%5C%20'%25%22=");
  CHECK(setting(url, "application_name") == "txinbox");
  db.run("drop role wicked_password");
}

TEST_CASE("the first of several hosts that answers is used" * doctest::skip(!on_postgresql())) {
  const TestDatabase db(TestDatabase::Tables::none);
  const std::size_t host = db.url().find('@') + 1;
  REQUIRE(host != std::string::npos + 1);
  std::string url = db.url();
  url.insert(host, "127.0.0.1:1,");
  CHECK(setting(url, "application_name") == "txinbox");
}

TEST_CASE("a connection string of libpq reaches the server unchanged" * doctest::skip(!on_postgresql())) {
  const TestDatabase db(TestDatabase::Tables::none);
  const detail::Url url = detail::parse_url(db.url());
  const std::string conninfo = "host=" + url.host + " port=" + url.port + " user=" + url.user + " password='" +
                               url.password + "' dbname=" + url.path + " application_name='a  b \\\\ c'";
  CHECK(setting("soci:postgresql://" + conninfo, "application_name") == "a  b \\ c");
}

}  // namespace
}  // namespace txinbox::test
