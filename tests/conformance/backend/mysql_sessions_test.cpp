// The tests read the list of a server's sessions while other sessions send statements that are not UTF-8.

#include "support/mysql_sessions.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>

#include "support/guard_cases.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {

TEST_CASE("a server lists its sessions while one of them runs a statement that is not UTF-8" *
          doctest::skip(!on_mysql())) {
  const TestDatabase db;
  db.run("create table t (id integer primary key)");
  db.run("insert into t values (1)");
  const std::string lock = "select id, _binary'\xf3\xce' from t where id = 1 for update";
  const auto holding = db.session();
  *holding << "begin";
  *holding << lock;
  const auto waiting = db.session();
  const long long id = connection_id(*waiting);
  std::jthread thread([&] {
    *waiting << "begin";
    CHECK_THROWS_AS(*waiting << lock, soci::soci_error);
  });
  const auto is_among = [&](const std::string& sessions) {
    return db.number("select count(*) from " + sessions + " s where id = " + std::to_string(id)) != 0;
  };
  while (!is_among(sessions_waiting_for_lock())) std::this_thread::sleep_for(std::chrono::milliseconds(150));
  CHECK(is_among(sessions_in_transaction()));
  CHECK(is_among(processlist()));
  kill_connection(id, db);
  CHECK_FALSE(is_among(processlist()));
}

}  // namespace txinbox::test
