// The process is killed before and after each statement that it runs on SQLite.

#include <sqlite3.h>

#include <csignal>

#include <doctest/doctest.h>

#include "faults/broker.hpp"
#include "faults/child_process.hpp"
#include "faults/fault_table.hpp"

namespace txinbox::test {
namespace {

/// The statements' beginnings and ends in this process, and the one at which it dies.
struct {
  int passed = 0;
  int fatal = -1;
} point;

int at_point(unsigned, void*, void*, void*) {
  if (point.passed++ == point.fatal) die();
  return 0;
}

int watch(sqlite3* db, char**, const sqlite3_api_routines*) {
  return sqlite3_trace_v2(db, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, at_point, nullptr);
}

/// Watches every connection that this process opens from now on.
void watch_all(int fatal) {
  point = {.passed = 0, .fatal = fatal};
  sqlite3_auto_extension(reinterpret_cast<void (*)()>(watch));
}

int statements_of(const Subject& subject, const std::string& url, int number) {
  watch_all(-1);
  {
    Service service(subject, url);
    (void)service.deliver(messages_for(subject, number), write_two_rows);
  }
  sqlite3_reset_auto_extension();
  return point.passed;
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
    const int points = statements_of(subject, db.url(), number++);
    REQUIRE(points > 10);
    for (int fatal = 0; fatal < points; ++fatal) {
      CAPTURE(fatal);
      Broker broker(db, messages_for(subject, number++));
      db.disconnect();
      const ChildEnding end = run_in_child([&] {
        watch_all(fatal);
        Service service(subject, db.url());
        (void)service.deliver(broker.messages(), write_two_rows);
      });
      REQUIRE(end.signal == SIGKILL);
      Service replica(subject, db.url());
      broker.deliver_until_settled(replica);
      broker.check_exactly_once(replica);
      count_case("process killed before or after a statement", subject.name);
    }
  }
}

}  // namespace txinbox::test
