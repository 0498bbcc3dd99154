// The positions of a partition that is read again.

#include <chrono>

#include <doctest/doctest.h>

#include "rewind.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using kafka::Rewind;
using Verdict = Rewind::Verdict;

const Rewind::Time start = Rewind::Time() + 1h;

Rewind sought(std::int64_t offset) {
  Rewind rewind;
  rewind.ask(offset);
  rewind.has_sought(start);
  return rewind;
}

TEST_CASE("Kafka: without a rewind, all messages of a partition pass") {
  Rewind rewind;
  for (const std::int64_t offset : {0, 1, 7}) CHECK(rewind.judge(offset) == Verdict::pass);
  CHECK_FALSE(rewind.is_late(start));
}

TEST_CASE("Kafka: after a rewind, messages pass from the offset that was asked for") {
  Rewind rewind = sought(10);
  CHECK(rewind.judge(10) == Verdict::pass);
  CHECK_FALSE(rewind.is_asked());
  CHECK(rewind.judge(12) == Verdict::pass);
}

TEST_CASE("Kafka: no message passes between a rewind and the seek") {
  Rewind rewind;
  rewind.ask(10);
  CHECK(rewind.judge(10) == Verdict::drop);
  CHECK(rewind.judge(11) == Verdict::drop);
  CHECK(rewind.is_asked());
}

TEST_CASE("Kafka: if a seek is lost, the client seeks again until the position is right") {
  Rewind rewind = sought(10);
  CHECK(rewind.judge(50) == Verdict::seek);
  rewind.has_sought(start);
  CHECK(rewind.judge(53) == Verdict::seek);
  rewind.has_sought(start);
  CHECK(rewind.judge(10) == Verdict::pass);
  CHECK(rewind.judge(11) == Verdict::pass);
}

TEST_CASE("Kafka: if the message at the offset is gone, the next one passes after a second seek") {
  Rewind rewind = sought(10);
  CHECK(rewind.judge(14) == Verdict::seek);
  rewind.has_sought(start);
  CHECK(rewind.judge(14) == Verdict::pass);
}

TEST_CASE("Kafka: a second rewind does not forget an earlier offset that was not reached") {
  Rewind rewind = sought(10);
  rewind.ask(20);
  CHECK(rewind.offset() == 10);
  rewind.ask(5);
  CHECK(rewind.offset() == 5);
  rewind.has_sought(start);
  CHECK(rewind.judge(5) == Verdict::pass);
  rewind.ask(20);
  CHECK(rewind.offset() == 20);
}

TEST_CASE("Kafka: a message that was rejected before another rewind proves no gap") {
  Rewind rewind = sought(10);
  CHECK(rewind.judge(14) == Verdict::seek);
  rewind.ask(10);
  rewind.has_sought(start);
  CHECK(rewind.judge(14) == Verdict::seek);
}

TEST_CASE("Kafka: the client seeks again if nothing comes for 10 s") {
  Rewind rewind = sought(10);
  CHECK_FALSE(rewind.is_late(start + 9'999ms));
  CHECK(rewind.is_late(start + 10s));
  rewind.has_sought(start + 10s);
  CHECK_FALSE(rewind.is_late(start + 11s));
  rewind.forget();
  CHECK_FALSE(rewind.is_late(start + 30s));
  CHECK(rewind.judge(11) == Verdict::pass);
}

}  // namespace
}  // namespace txinbox::test
