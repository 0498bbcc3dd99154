#include "base/retry_schedule.hpp"

#include <doctest/doctest.h>

namespace txinbox::detail {
namespace {

using std::chrono::milliseconds;

TEST_CASE("a backoff is at most its bound, and the bound doubles up to the policy's limit") {
  for (int round = 0; round < 200; ++round) {
    RetrySchedule schedule({.initial_backoff = milliseconds(10), .max_backoff = milliseconds(35)});
    CHECK(schedule.next_backoff() <= milliseconds(10));
    CHECK(schedule.next_backoff() <= milliseconds(20));
    CHECK(schedule.next_backoff() <= milliseconds(35));
    CHECK(schedule.next_backoff() <= milliseconds(35));
  }
}

TEST_CASE("backoffs are spread over the whole of their bound") {
  bool short_one = false;
  bool long_one = false;
  for (int round = 0; round < 1000; ++round) {
    RetrySchedule schedule({.initial_backoff = milliseconds(1000), .max_backoff = milliseconds(1000)});
    const milliseconds backoff = schedule.next_backoff();
    short_one = short_one || backoff < milliseconds(200);
    long_one = long_one || backoff > milliseconds(800);
  }
  CHECK(short_one);
  CHECK(long_one);
}

TEST_CASE("the longest backoffs do not overflow") {
  const auto longest = milliseconds::max();
  RetrySchedule schedule({.initial_backoff = longest / 3 * 2, .max_backoff = longest, .max_elapsed = longest});
  for (int i = 0; i < 4; ++i) CHECK(schedule.next_backoff() >= milliseconds(0));
}

TEST_CASE("runs are counted, and end with the policy's last") {
  RetrySchedule schedule({.max_runs = 2, .max_elapsed = std::chrono::hours(1)});
  CHECK(schedule.attempt() == 1);
  CHECK(schedule.may_retry());
  CHECK(schedule.wait(milliseconds(0), {}));
  CHECK(schedule.attempt() == 2);
  CHECK(!schedule.may_retry());
}

TEST_CASE("no run begins when the time is over") {
  const RetrySchedule schedule({.max_elapsed = milliseconds(0)});
  CHECK(!schedule.may_retry());
}

TEST_CASE("the longest time does not end") {
  CHECK(RetrySchedule({.max_elapsed = milliseconds::max()}).may_retry(milliseconds(1)));
}

TEST_CASE("a stop ends the wait, and the run is not counted") {
  std::stop_source stop;
  stop.request_stop();
  RetrySchedule schedule({});
  CHECK(!schedule.wait(std::chrono::hours(1), stop.get_token()));
  CHECK(schedule.attempt() == 1);
}

}  // namespace
}  // namespace txinbox::detail
