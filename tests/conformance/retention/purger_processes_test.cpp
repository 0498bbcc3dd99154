// Purgers on a server that is silent, and in several processes.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/eventually.hpp"
#include "support/old_rows.hpp"
#include "support/proxy.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("the destructor of a purger does not wait for a silent network" * doctest::test_suite("timed") *
          doctest::skip(!has_server())) {
  const TestDatabase db;
  Proxy proxy(db.url());
  Pool pool = open_pool(proxy.url(), {.connect_timeout = 2s, .lock_timeout = 1s, .statement_timeout = 1s});
  std::atomic<int> failures = 0;
  std::optional<Purger> purger(
      std::in_place, pool, 1h,
      PurgerOptions{.interval = 1ms,
                    .purge = {.retry = {.max_runs = 1}, .listeners = {on_event([&](const Event&) { ++failures; })}}});
  proxy.fall_silent();
  CHECK(eventually([&] { return failures > 0; }));
  const auto begin = std::chrono::steady_clock::now();
  purger.reset();
  CHECK(std::chrono::steady_clock::now() - begin < 1min);
  proxy.fall_silent(false);
}

PurgerOptions often(std::function<void(const Event&)> observer) {
  return {.interval = 20ms, .purge = {.listeners = {on_event(std::move(observer))}}};
}

/// Runs a purger until `until` is closed. Returns the process's exit status: 0 if no purge failed.
int run_purger_process(const OldRows& db, int ready, int until) {
  std::atomic<int> failures = 0;
  Pool pool = db.pool(1);
  {
    const Purger purger(pool, 24h, often([&](const Event& event) { failures += event.type == EventType::failed; }));
    char byte = 0;
    if (write(ready, "x", 1) != 1 || read(until, &byte, 1) < 0) return 2;
  }
  return failures == 0 ? 0 : 1;
}

TEST_CASE("purgers in several processes and threads remove each row once") {
  const OldRows db;
  constexpr int processes = 3;
  int ready[2];
  int until[2];
  REQUIRE(pipe(ready) == 0);
  REQUIRE(pipe(until) == 0);
  db.disconnect();
  pid_t children[processes];
  for (pid_t& child : children) {
    child = fork();
    if (child == 0) {
      close(until[1]);
      _exit(run_purger_process(db, ready[1], until[0]));
    }
  }
  for (int i = 0; i < processes; ++i) {
    char byte = 0;
    REQUIRE(read(ready[0], &byte, 1) == 1);
  }
  Pool pool = db.pool(2);
  std::atomic<int> failures = 0;
  const auto observer = [&](const Event& event) { failures += event.type == EventType::failed; };
  {
    const Purger one(pool, 24h, often(observer));
    const Purger two(pool, 24h, often(observer));
    for (int i = 0; i < 5; ++i) {
      db.add("svc", 400, 25h);
      CHECK(eventually([&] { return db.claims() == 0; }));
    }
  }
  close(until[1]);
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  for (const int fd : {ready[0], ready[1], until[0]}) close(fd);
  CHECK(failures == 0);
  CHECK(db.number("select purged from txinbox_consumer") == 2'000);
}

}  // namespace
}  // namespace txinbox::test
