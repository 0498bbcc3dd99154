// A purge that runs at the same time as consumers and other purges.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/old_rows.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// Records the errors that cause retries, in all threads.
class Retries {
 public:
  std::function<void(const Event&)> observer() {
    return [this](const Event& event) {
      if (event.type != EventType::retry) return;
      const std::lock_guard lock(mutex_);
      classes_ += std::string(event.error_class) + "\n";
    };
  }
  std::string classes() {
    const std::lock_guard lock(mutex_);
    return classes_;
  }

 private:
  std::mutex mutex_;
  std::string classes_;
};

const std::string none;

/// Selects two rows by their keys, so that a lock affects no other row.
std::string two_keys() {
  return std::string("select state from txinbox_consumed_message ") + (on_mysql() ? "force index (primary) " : "") +
         "where consumer = 'svc' and business_key in ('k3', 'k7') ";
}

TEST_CASE("concurrent purges remove each row once, and none of them fails or waits for another") {
  const OldRows db;
  constexpr std::size_t threads = 4;
  constexpr int rows = 3'000;
  db.add("svc", rows, 25h);
  std::latch start(threads);
  std::atomic<std::size_t> removed = 0;
  Retries retries;
  std::vector<std::thread> purges;
  for (std::size_t i = 0; i < threads; ++i) {
    purges.emplace_back([&] {
      Pool pool = db.pool(1);
      const auto connection = pool.acquire();
      start.arrive_and_wait();
      removed += purge(connection, 1h, {.batch_size = 50, .duty = 1, .listeners = {on_event(retries.observer())}});
    });
  }
  for (std::thread& each : purges) each.join();
  CHECK(removed == rows);
  CHECK(db.claims() == 0);
  CHECK(db.number("select purged from txinbox_consumer where consumer = ''") == rows);
  if (!on_galera()) CHECK(retries.classes() == none);
}

TEST_CASE("a purge skips a row that a consumer holds without a wait, and the next purge removes it" *
          doctest::skip(one_writer())) {
  for (const std::string& hold :
       {two_keys() + "for update", two_keys() + (on_mysql() ? "lock in share mode" : "for share")}) {
    CAPTURE(hold);
    const OldRows db;
    db.add("svc", 10, 25h);
    const auto holder = db.session();
    holder->begin();
    {
      soci::rowset<std::string> held = (holder->prepare << hold);
      CHECK(std::distance(held.begin(), held.end()) == 2);
    }
    Retries retries;
    CHECK(purge(*db.session(), 1h, {.batch_size = 4, .listeners = {on_event(retries.observer())}}) == 8);
    CHECK(retries.classes() == none);
    holder->commit();
    CHECK(db.claims() == 2);
    CHECK(purge(*db.session(), 1h) == 2);
  }
}

/// Adds old rows whose ages are not in the order of their keys.
std::vector<Message> add_old_keys(const OldRows& db, int count) {
  db.add("svc", count, 48h);
  db.run("update txinbox_consumed_message set consumed_at = " + OldRows::ago(47h) + " where business_key like '%3'");
  db.run("update txinbox_consumed_message set consumed_at = " + OldRows::ago(46h) + " where business_key like '%7'");
  std::vector<std::string> keys;
  for (int i = 0; i < count; ++i) keys.push_back("k" + std::to_string(i));
  return messages_of(keys);
}

TEST_CASE("a purge and batches of old duplicates at the same time: no deadlock, and no message takes effect twice") {
  constexpr int rounds = 4;
  constexpr int keys = 1'200;
  constexpr int consumers = 2;
  constexpr int batch = 100;
  for (int round = 0; round < rounds; ++round) {
    const OldRows db;
    const std::vector<Message> messages = add_old_keys(db, keys);
    Pool pool = db.pool(consumers + 1);
    Retries retries;
    TxConsumer consumer(pool, "svc", {.listeners = {on_event(retries.observer())}});
    std::latch start(consumers + 1);
    std::atomic<int> duplicates = 0;
    std::vector<std::thread> threads;
    for (int c = 0; c < consumers; ++c) {
      // Each thread has its own keys, because two batches that insert the same keys can deadlock even without a purge.
      threads.emplace_back([&, c] {
        start.arrive_and_wait();
        for (int at = c * batch; at < keys; at += consumers * batch) {
          for (const Result& each :
               consumer.consume_batch(std::span(messages).subspan(static_cast<std::size_t>(at), batch), add_effect)) {
            duplicates += each.outcome == Outcome::already_consumed;
            CHECK((each.outcome == Outcome::already_consumed || each.outcome == Outcome::consumed));
          }
        }
      });
    }
    std::size_t removed = 0;
    {
      const auto connection = pool.acquire();
      start.arrive_and_wait();
      removed = purge(connection, 1h, {.batch_size = 60, .duty = 1, .listeners = {on_event(retries.observer())}});
    }
    for (std::thread& each : threads) each.join();
    if (!on_galera()) CHECK(retries.classes() == none);
    removed += purge(pool.acquire(), 1h);
    CHECK(removed == keys);
    CHECK(db.effects() == keys - duplicates);
    CHECK(db.number("select count(distinct id) from effect") == db.effects());
    CHECK(db.claims() == db.effects());
  }
}

/// Consumes new messages without a pause until `until` is closed. Returns the process's exit status.
int write_busily(const TestDatabase& db, int ready, int until) {
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "busy", {.retry = {.max_runs = 100}});
  std::jthread writer([&](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      const Message message{.business_key = std::to_string(getpid()) + "-" + std::to_string(i)};
      if (consumer.consume(message, add_effect).outcome != Outcome::consumed) _exit(1);
      if (i == 0 && write(ready, "x", 1) != 1) _exit(2);
    }
  });
  char byte = 0;
  return read(until, &byte, 1) == 0 ? 0 : 3;
}

TEST_CASE("a purge completes while writers in this process and in another are busy, and no writer fails") {
  const OldRows db;
  constexpr int rows = 2'000;
  db.add("svc", rows, 25h);
  int ready[2];
  int until[2];
  REQUIRE(pipe(ready) == 0);
  REQUIRE(pipe(until) == 0);
  db.disconnect();
  const pid_t child = fork();
  if (child == 0) {
    close(until[1]);
    _exit(write_busily(db, ready[1], until[0]));
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);

  Pool pool = db.pool(4);
  TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 100}});
  std::atomic<int> consumed = 0;
  std::size_t removed = 0;
  {
    std::vector<std::jthread> writers;
    for (int t = 0; t < 2; ++t) {
      writers.emplace_back([&, t](const std::stop_token& stop) {
        for (int i = 0; !stop.stop_requested(); ++i) {
          const Message message{.business_key = std::to_string(t) + "-" + std::to_string(i)};
          consumed += consumer.consume(message, add_effect).outcome == Outcome::consumed;
        }
      });
    }
    while (consumed == 0) std::this_thread::sleep_for(1ms);
    std::jthread other([&] { removed += purge(pool.acquire(), 1h, {.max_rows = rows / 4}); });
    const std::size_t own = purge(pool.acquire(), 1h);
    other.join();
    removed += own;
    CHECK(consumed > 0);
  }
  close(until[1]);
  int status = -1;
  waitpid(child, &status, 0);
  for (const int fd : {ready[0], ready[1], until[0]}) close(fd);
  CHECK(status == 0);
  CHECK(removed == rows);
  CHECK(db.claims() == db.effects());
}

}  // namespace
}  // namespace txinbox::test
