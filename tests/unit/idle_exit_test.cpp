// When `run` ends because no more messages come.

#include <chrono>
#include <optional>

#include <doctest/doctest.h>

#include "run/idle_exit.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using detail::IdleExit;
using std::chrono::milliseconds;

/// Polls a source each 100 ms.
class IdleWorld {
 public:
  explicit IdleWorld(std::optional<milliseconds> idle_exit) : idle_exit_(idle_exit, now_) {}

  /// Returns after which time `run` ends, while the source has this status. None: not within this time.
  std::optional<milliseconds> ends(const SourceStatus& status, milliseconds within = 1h) {
    for (const auto start = now_; now_ - start < within;) {
      now_ += 100ms;
      if ((end = idle_exit_.polled_nothing(status, now_)))
        return std::chrono::duration_cast<milliseconds>(now_ - start);
    }
    return std::nullopt;
  }
  void message() { idle_exit_.busy(now_ += 100ms); }

  std::optional<RunEnd> end;

 private:
  IdleExit::Time now_{1h};
  IdleExit idle_exit_;
};

const SourceStatus unknown{.connected = true};
const SourceStatus at_end{.connected = true, .at_end = true};
const SourceStatus waits{.connected = true, .at_end = false};
const SourceStatus away{.connected = false};

TEST_CASE("run ends when no message came for the time of idle_exit") {
  IdleWorld world(2s);
  SUBCASE("of a source that is at its end") { CHECK(world.ends(at_end) == 2s); }
  SUBCASE("of a source that does not know whether it is") { CHECK(world.ends(unknown) == 2s); }
  SUBCASE("after the last message") {
    CHECK(world.ends(at_end, 1900ms) == std::nullopt);
    world.message();
    CHECK(world.ends(at_end) == 2s);
  }
  SUBCASE("after the broker was away") {
    CHECK(world.ends(away, 29s) == std::nullopt);
    CHECK(world.ends(at_end) == 2s);
  }
  SUBCASE("after the group has given the lanes") {
    CHECK(world.ends(waits, 29s) == std::nullopt);
    CHECK(world.ends(at_end) == 2s);
  }
  CHECK(world.end == RunEnd::idle);
}

TEST_CASE("run ends with a reason of its own if the source gives nothing and is not at its end") {
  constexpr milliseconds idle_exit = 2s;
  constexpr milliseconds time = IdleExit::least_wait;
  SUBCASE("the broker is away") {
    IdleWorld world(idle_exit);
    CHECK(world.ends(away) == time + 100ms);
    CHECK(world.end == RunEnd::unreachable);
  }
  SUBCASE("messages wait at the broker") {
    IdleWorld world(idle_exit);
    CHECK(world.ends(waits) == time + 100ms);
    CHECK(world.end == RunEnd::not_at_end);
  }
  SUBCASE("a longer idle_exit counts") {
    IdleWorld world(5min);
    CHECK(world.ends(away) == 5min + 100ms);
  }
  SUBCASE("a message begins the time again") {
    IdleWorld world(idle_exit);
    CHECK(world.ends(away, 29s) == std::nullopt);
    world.message();
    CHECK(world.ends(away) == time + 100ms);
  }
  SUBCASE("the end of the source begins the time again") {
    IdleWorld world(idle_exit);
    CHECK(world.ends(waits, 29s) == std::nullopt);
    CHECK(world.ends(at_end, 1s) == std::nullopt);
    CHECK(world.ends(waits) == time + 100ms);
  }
}

TEST_CASE("run without idle_exit never ends by itself") {
  IdleWorld world(std::nullopt);
  CHECK(world.ends(at_end) == std::nullopt);
  CHECK(world.ends(away) == std::nullopt);
}

}  // namespace
}  // namespace txinbox::test
