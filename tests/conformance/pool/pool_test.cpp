// Connections that a pool cannot open, that were lost, or that are given back.

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/guard_cases.hpp"
#include "support/outcomes.hpp"
#include "support/source_files.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using std::chrono::milliseconds;

const Message order{.business_key = "order123"};

TEST_CASE("a pool tries again to open a connection that failed, and does not count it against its size") {
  EffectDatabase db;
  bool broken = false;
  Pool pool =
      db.pool(PoolOptions{.connections = 2, .acquire_timeout = milliseconds(20), .on_connect = [&](soci::session&) {
                            if (broken) throw std::domain_error("in place of an error of the server");
                          }});
  const auto held = pool.acquire();
  broken = true;
  for (int i = 0; i < 3; ++i) CHECK_THROWS_AS((void)pool.acquire(), std::domain_error);
  broken = false;
  CHECK_NOTHROW((void)pool.acquire());
}

/// The URL with another user or another database. An empty text keeps the part of the URL.
std::string url_with(const std::string& url, const std::string& user, const std::string& database) {
  const auto begin = url.find("://") + 3;
  const auto password = url.find(':', begin);
  const auto path = url.find('/', begin);
  const auto more = std::min(url.find('?', path), url.size());
  const std::string named = database.empty() ? url.substr(path + 1, more - path - 1) : database;
  return url.substr(0, begin) + (user.empty() ? url.substr(begin, password - begin) : user) +
         url.substr(password, path - password) + "/" + named + url.substr(more);
}

TEST_CASE("access that the server or the file system refuses is not retried") {
  const TestDatabase db(TestDatabase::Tables::none);
  std::vector<std::string> urls;
  if (on_sqlite3()) {
    urls = {"sqlite:///no/such/folder/x.db", "sqlite:" + (source_folder() / "tests" / "main.cpp").string(),
            "sqlite:" + source_folder().string()};
  } else {
    urls = {url_with(db.url(), "nobody", ""), url_with(db.url(), "", "nowhere")};
  }
  for (const std::string& url : urls) {
    CAPTURE(url);
    std::exception_ptr error;
    try {
      (void)open_pool(url);
    } catch (...) {
      error = std::current_exception();
    }
    CHECK(code_of(error) == ErrorCode::access_refused);
    CHECK(action_for(error) == Action::stop);
    CHECK(!is_transient(error));
  }
}

TEST_CASE("an error names the parameter of the URL that the client library does not know" *
          doctest::skip(!on_postgresql())) {
  const TestDatabase db(TestDatabase::Tables::none);
  const std::string url = db.url() + (db.url().find('?') == std::string::npos ? "?" : "&") + "nonsense=1";
  try {
    (void)open_pool(url);
    FAIL("the parameter was accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    CHECK(std::string(error.what()).find("nonsense") != std::string::npos);
  }
}

TEST_CASE("a pool does not give out a connection that the server closed while it was idle" *
          doctest::skip(!has_server())) {
  EffectDatabase db;
  Pool pool = db.pool(1);
  const long long before = connection_id(pool.acquire().session());
  kill_connection(before, db);
  const Connection next = pool.acquire();
  CHECK(connection_id(next.session()) != before);
}

TEST_CASE("an open transaction is rolled back when its connection is given back") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  {
    auto connection = pool.acquire();
    connection.session().begin();
    connection.session() << "insert into effect values ('left open')";
  }
  {
    auto connection = pool.acquire();
    long long rows = 1;
    connection.session() << "select count(*) from effect", soci::into(rows);
    CHECK(rows == 0);
  }
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume(order, add_effect).outcome == Outcome::consumed);
}

TEST_CASE("the error of a server that became read-only is transient, and the pool opens another connection" *
          doctest::skip(!on_mysql())) {
  EffectDatabase db;
  const auto admin = db.session();
  int connects = 0;
  // The test's user may write on a read-only server. So the handler raises this error itself.
  Pool pool = db.pool(PoolOptions{.connections = 1, .on_connect = [&](soci::session&) { ++connects; }});
  TxConsumer consumer(pool, "svc");
  const Result result = consumer.consume(order, [&](soci::session& sql, Delivery& d) {
    add_effect(sql, d);
    if (d.attempt() == 1) sql << "signal sqlstate 'HY000' set mysql_errno = 1290, message_text = 'read-only'";
  });
  CHECK(result.outcome == Outcome::consumed);
  CHECK(connects == 2);
  CHECK(db.effects() == 1);
}

}  // namespace
}  // namespace txinbox::test
