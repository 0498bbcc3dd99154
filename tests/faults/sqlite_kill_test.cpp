// The process is killed before and after each statement that it runs on SQLite.

#include <csignal>

#include <doctest/doctest.h>

#include "faults/broker.hpp"
#include "faults/fault_table.hpp"
#include "faults/sqlite_statements.hpp"
#include "support/child_process.hpp"

namespace txinbox::test {
namespace {

int points_of(const Subject& subject, const std::string& url, int number) {
  int points = 0;
  at_each_sqlite_statement([&] { ++points; });
  {
    Service service(subject, url);
    (void)service.deliver(messages_for(subject, number), write_two_rows);
  }
  at_each_sqlite_statement({});
  return points;
}

}  // namespace

TEST_CASE("a process killed before or after any statement loses and doubles nothing" * doctest::skip(!on_sqlite3())) {
  FaultDatabase db;
  for (const Subject& subject : subjects()) {
    CAPTURE(subject.name);
    int number = 0;
    {
      Service once(subject, db.url());
      once.warm_up();
    }
    const int points = points_of(subject, db.url(), number++);
    REQUIRE(points > 10);
    for (int fatal = 0; fatal < points; ++fatal) {
      CAPTURE(fatal);
      Broker broker(db, subject, messages_for(subject, number++));
      db.disconnect();
      const ChildEnding end = run_in_child([&] {
        int passed = 0;
        at_each_sqlite_statement([&] {
          if (passed++ == fatal) die();
        });
        Service service(subject, db.url());
        (void)service.deliver(broker.messages(), write_two_rows);
      });
      REQUIRE(end.signal == SIGKILL);
      Service replica(subject, db.url());
      broker.deliver_until_settled(replica);
      const bool doubled = broker.check_promise(replica);
      count_case("process killed before or after a statement", subject.name, doubled ? Mark::doubled : Mark::none);
    }
  }
}

}  // namespace txinbox::test
