#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

using std::chrono::milliseconds;

const Message order{.business_key = "order123"};

/// How the first of the concurrent deliveries ends.
enum class First { commits, rolls_back, dies };

/// Starts a process that claims the key and is killed inside its handler. Returns when the handler has begun.
pid_t start_doomed_process(const EffectDatabase& db) {
  int inside[2];
  REQUIRE(pipe(inside) == 0);
  const pid_t child = fork();
  if (child == 0) {
    Pool pool = db.pool(1);
    TxConsumer consumer(pool, "svc");
    (void)consumer.consume(order, [&](soci::session& sql, Delivery& d) {
      add_effect(sql, d);
      if (write(inside[1], "x", 1) == 1) usleep(100'000);
      kill(getpid(), SIGKILL);
    });
    _exit(1);
  }
  char ready = 0;
  REQUIRE(read(inside[0], &ready, 1) == 1);
  close(inside[0]);
  close(inside[1]);
  return child;
}

void check_same_key(int threads, First first) {
  CAPTURE(threads);
  CAPTURE(static_cast<int>(first));
  EffectDatabase db;
  const pid_t doomed = first == First::dies ? start_doomed_process(db) : 0;

  Pool pool = db.pool(static_cast<std::size_t>(threads));
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 50}});
  std::atomic<int> consumed = 0;
  std::atomic<int> duplicates = 0;
  std::atomic<int> failed = 0;
  std::atomic<int> arrivals = 0;
  const auto deliver = [&] {
    try {
      const Result result = consumer.consume(order, [&](soci::session& sql, Delivery& d) {
        add_effect(sql, d);
        if (arrivals++ > 0 || first == First::dies) return;
        std::this_thread::sleep_for(milliseconds(100));  // so that the other deliveries wait
        if (first == First::rolls_back) throw std::runtime_error("the first one fails");
      });
      ++(result.outcome == Outcome::consumed ? consumed : duplicates);
    } catch (const std::runtime_error&) {
      ++failed;
    }
  };
  std::vector<std::thread> workers;
  workers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) workers.emplace_back(deliver);
  for (std::thread& each : workers) each.join();

  CHECK(consumed == 1);
  CHECK(failed == (first == First::rolls_back ? 1 : 0));
  CHECK(consumed + duplicates + failed == threads);
  CHECK(db.effects() == 1);
  CHECK(db.claims() == 1);
  if (doomed != 0) {
    int status = 0;
    waitpid(doomed, &status, 0);
    CHECK(WIFSIGNALED(status));
  }
}

TEST_CASE("many threads with one key: one consumes it when the first commits") {
  for (const int threads : {2, 3, 16}) check_same_key(threads, First::commits);
}

TEST_CASE("many threads with one key: one consumes it when the first rolls back") {
  for (const int threads : {2, 3, 16}) check_same_key(threads, First::rolls_back);
}

TEST_CASE("many threads with one key: one consumes it when the process of the first dies") {
  for (const int threads : {2, 3, 16}) check_same_key(threads, First::dies);
}

TEST_CASE("many threads, three copies of each key, and failing handlers: each key takes effect once" *
          doctest::test_suite("timed")) {
  EffectDatabase db;
  constexpr int keys = 40;
  constexpr int copies = 3;
  Pool pool = db.pool(4);
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 50}});
  std::atomic<int> next = 0;
  std::vector<std::thread> workers;
  for (int t = 0; t < 4; ++t) {
    workers.emplace_back([&] {
      for (int n = next++; n < keys * copies; n = next++) {
        const Message message{.business_key = "key" + std::to_string(n % keys)};
        for (bool acknowledged = false; !acknowledged;) {
          try {
            const Result result = consumer.consume(message, [&](soci::session& sql, Delivery& d) {
              add_effect(sql, d);
              if (std::rand() % 5 == 0) throw std::runtime_error("a random failure");
            });
            acknowledged = action_for(result) == Action::acknowledge;
          } catch (const std::runtime_error&) {  // the message is delivered again
          }
        }
      }
    });
  }
  for (std::thread& each : workers) each.join();
  CHECK(db.effects() == keys);
  CHECK(db.number("select count(distinct id) from effect") == keys);
  CHECK(db.claims() == keys);
}

TEST_CASE("redeliveries of one consumed key do not block each other") {
  // If a redelivery read the row with an exclusive lock, most of them would deadlock on MariaDB and MySQL.
  EffectDatabase db;
  Pool pool = db.pool(4);
  std::atomic<int> retries = 0;
  TxConsumer consumer(
      pool, "svc", {.listeners = {on_event([&](const Event& e) { retries += e.type == EventType::retry ? 1 : 0; })}});
  (void)consumer.consume(order, add_effect);
  std::atomic<int> duplicates = 0;
  std::vector<std::thread> workers;
  for (int t = 0; t < 4; ++t) {
    workers.emplace_back([&] {
      for (int n = 0; n < 50; ++n) {
        duplicates += consumer.consume(order, add_effect).outcome == Outcome::already_consumed ? 1 : 0;
      }
    });
  }
  for (std::thread& each : workers) each.join();
  CHECK(duplicates == 200);
  CHECK(retries == 0);
  CHECK(db.effects() == 1);
}

TEST_CASE("callers' sessions in several threads share the keys with a pool") {
  EffectDatabase db;
  Pool pool = db.pool(2);
  TxConsumer pooled(pool, "svc", {.retry = {.max_runs = 50}});
  std::vector<std::thread> workers;
  for (int t = 0; t < 4; ++t) {
    workers.emplace_back([&, t] {
      const auto sql = db.session();
      TxConsumer own(*sql, "svc", {.retry = {.max_runs = 50}});
      for (int n = 0; n < 20; ++n) {
        (void)(t % 2 == 0 ? own : pooled).consume({.business_key = "key" + std::to_string(n)}, add_effect);
      }
    });
  }
  for (std::thread& each : workers) each.join();
  CHECK(db.effects() == 20);
  CHECK(db.number("select count(distinct id) from effect") == 20);
}

TEST_CASE(
    "the threads of one process wait in a queue to write to SQLite: each gets its turn, and none gets SQLITE_BUSY" *
    doctest::skip(!on_sqlite3())) {
  EffectDatabase db;
  Pool pool = db.pool(8);
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 1}});
  std::vector<std::thread> workers;
  std::vector<int> done(8, 0);
  std::latch start(8);
  for (std::size_t t = 0; t < done.size(); ++t) {
    workers.emplace_back([&, t] {
      start.arrive_and_wait();
      for (int n = 0; n < 25; ++n) {
        const std::string key = std::to_string(t) + "-" + std::to_string(n);
        done[t] += consumer.consume({.business_key = key}, add_effect).outcome == Outcome::consumed ? 1 : 0;
      }
    });
  }
  for (std::thread& each : workers) each.join();
  CHECK(done == std::vector<int>(8, 25));
  CHECK(db.effects() == 200);
}

TEST_CASE("batches with the same keys in opposite orders do not deadlock") {
  EffectDatabase db;
  Pool pool = db.pool(4);
  std::atomic<int> retries = 0;
  TxConsumer consumer(pool, "order-service", {.listeners = {on_event([&](const Event& e) {
                                                if (e.type == EventType::retry) ++retries;
                                              })}});
  for (int round = 0; round < 20; ++round) {
    std::vector<Message> forward;
    for (int i = 0; i < 30; ++i) forward.push_back({.business_key = std::to_string(round) + "-" + std::to_string(i)});
    std::vector<Message> backward(forward.rbegin(), forward.rend());
    std::thread other([&] { (void)consumer.consume_batch(backward, add_effect); });
    (void)consumer.consume_batch(forward, add_effect);
    other.join();
  }
  CHECK(db.effects() == 600);
  CHECK(db.claims() == 600);
  CHECK(retries == 0);
}

TEST_CASE("with many threads and a small cache of recent keys, each message takes effect once") {
  EffectDatabase db;
  Pool pool = db.pool(4);
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 20}, .recent_keys = {.capacity = 8}});
  std::atomic<int> told_consumed = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 60; ++i) {
        const int first = (i * 7 + thread) % 20;
        if (i % 3 == 0) {
          const auto told = outcomes(consumer.consume_batch(
              messages_of({std::to_string(first), std::to_string((first + 1) % 20)}), add_effect));
          told_consumed += static_cast<int>(std::count(told.begin(), told.end(), consumed));
        } else {
          told_consumed +=
              consumer.consume({.business_key = std::to_string(first)}, add_effect).outcome == consumed ? 1 : 0;
        }
      }
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(told_consumed == 20);
  CHECK(db.effects() == 20);
  CHECK(db.claims() == 20);
}

}  // namespace
}  // namespace txinbox::test
