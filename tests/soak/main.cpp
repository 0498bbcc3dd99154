// Consumes in every way for a long time, and measures what a leak would increase. tests/soak.sh runs it.
//
// Usage: txinbox_soak SECONDS, with TXINBOX_TEST_DATABASE and TXINBOX_TEST_URL as for the tests.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "soak/watch.hpp"
#include "soak/workload.hpp"
#include "support/counts.hpp"

using namespace txinbox;
using namespace txinbox::soak;

namespace {

using Clock = std::chrono::steady_clock;

// The allowed growth of resident memory, in MiB. glibc's heap normally varies by less. A leak of a hundred bytes per
// delivery would be more than this after half an hour.
constexpr double most_growth = 4;

// The connections of the pool, one of each worker, and one that measures.
constexpr long most_connections = pool_size + worker_count + 1;

// The number of statements that the library and the handlers prepare on one connection.
constexpr long most_statements = 16;

int failures = 0;

void check(bool holds, const char* claim) {
  if (holds) return;
  std::printf("%s: FAILED: %s\n", test::database().c_str(), claim);
  ++failures;
}

void print(const char* what, double minutes, const Shared& shared, const Sample& sample) {
  std::printf(
      "%s %s: %.1f min, %ld deliveries, %ld connections killed; %.1f MiB, %ld descriptors, %ld connections, "
      "%ld statements\n",
      test::database().c_str(), what, minutes, shared.deliveries.load(), shared.lost.load(), sample.memory,
      sample.descriptors, sample.connections, sample.statements);
  std::fflush(stdout);
}

// It takes a sample each second, except during the warm-up, in which caches fill and heaps reach their size. It prints
// a line for every tenth part of the time.
Watch watch(Shared& shared, std::chrono::seconds duration) {
  Watch watched;
  const auto begin = Clock::now();
  auto next_line = begin;
  for (auto now = begin; now < begin + duration; now = Clock::now()) {
    const Sample sample = take_sample(shared);
    if (now - begin > duration / 5) watched.add(sample);
    if (now >= next_line) {
      print("soak", std::chrono::duration<double, std::ratio<60>>(now - begin).count(), shared, sample);
      next_line += duration / 10;
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  return watched;
}

void run(const test::EffectDatabase& db, std::chrono::seconds duration) {
  Pool pool = db.pool(pool_size);
  Shared shared(db, pool);
  Watch watched;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < worker_count; ++i) {
      threads.emplace_back([&shared, i](const std::stop_token& stop) { Worker(shared, i).run(stop); });
    }
    watched = watch(shared, duration);
  }
  const Sample greatest = watched.greatest();
  print("greatest", static_cast<double>(duration.count()) / 60, shared, greatest);
  test::count(shared.deliveries, "deliveries");
  test::count(shared.lost, "connections killed");
  std::printf("note: %s: %.2f MiB after the warm-up, %.2f MiB at the end\n", test::database().c_str(),
              watched.memory_at_begin(), watched.memory_at_end());
  check(watched.growth() < most_growth, "the memory does not grow");
  check(greatest.connections <= most_connections, "no connection is leaked");
  check(greatest.statements <= most_statements, "no prepared statement is leaked");
}

void check_accounts(const test::EffectDatabase& db) {
  const long long effects = db.effects();
  check(effects > 0, "something took effect");
  check(effects == db.number("select count(distinct id) from effect"), "nothing took effect twice");
  check(effects == db.number("select count(*) from txinbox_consumed_message where state = 'consumed'"),
        "each consumed key took effect, and nothing else did");
}

}  // namespace

int main(int argc, char** argv) {
  const int seconds = argc == 2 ? std::atoi(argv[1]) : 0;
  if (seconds < 10) {
    std::fprintf(stderr, "txinbox_soak SECONDS, at least 10\n");
    return 2;
  }
  const test::EffectDatabase db;
  db.run("create index effect_id on effect (id)");  // without it, each handler would take longer than the previous one
  const long descriptors = open_descriptors();
  run(db, std::chrono::seconds(seconds));
  check(open_descriptors() == descriptors, "no descriptor is leaked");
  check_accounts(db);
  return failures == 0 ? 0 : 1;
}
