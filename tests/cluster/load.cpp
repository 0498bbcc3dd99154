#include "cluster/load.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/result.hpp>

namespace txinbox::test {
namespace {

using std::chrono::milliseconds;

constexpr int hot_rows = 10;

/// A consumer on one node. If it has its own session, the session can be opened again.
struct Endpoint {
  std::unique_ptr<soci::session> session;
  std::optional<TxConsumer> consumer;
};

class Run {
 public:
  Run(const ClusterDatabase& db, const Load& load) : db_(db), load_(load) {
    for (int node = 1; node <= nodes && load.pooled; ++node) {
      PoolOptions options{.connections = static_cast<std::size_t>(load.threads),
                          .connect_timeout = std::chrono::seconds(2)};
      if (!load.session_setting.empty()) {
        options.on_connect = [&load](soci::session& sql) { sql << load.session_setting; };
      }
      Pool pool = db.pool(node, options);
      shared_.push_back({nullptr, TxConsumer(pool, "svc", options_for_consumer())});
    }
  }

  void run(const std::function<void()>& meanwhile) {
    std::vector<std::thread> workers;
    for (int node = 1; node <= nodes; ++node) {
      for (int i = 0; i < load_.threads; ++i) workers.emplace_back([this, node] { work(node); });
    }
    if (meanwhile) {
      auto faults = std::async(std::launch::async, meanwhile);
      while (faults.wait_for(milliseconds(50)) != std::future_status::ready) released_ += 10;
      faults.get();
    }
    over_ = true;
    for (std::thread& each : workers) each.join();
    tally_.keys = released_.load();
    fmt::print("    {}\n", tally_.text());
    check_books();
  }

 private:
  ConsumerOptions options_for_consumer() {
    return {.retry = {.max_runs = 20, .max_elapsed = std::chrono::seconds(2)},
            .listeners = {on_event([this](const Event& e) {
              if (e.type != EventType::retry) return;
              ++tally_.retries;
              tally_.note(e.error);
            })},
            .recent_keys = {.capacity = load_.recent_keys}};
  }

  /// One thread's stream. If a delivery fails on one node, the thread tries the next node, and then returns to its own
  /// node.
  void work(int home) {
    std::vector<Endpoint> own(nodes);
    std::vector<Message> todo;
    int next = 0;
    int node = home;
    for (;;) {
      while (todo.size() < load_.batch && next < released_) {
        todo.push_back({.business_key = fmt::format("key{}", next++)});
      }
      if (todo.empty()) {
        if (over_ && next == released_) return;
        std::this_thread::sleep_for(milliseconds(5));
        continue;
      }
      const auto acknowledged = deliver(at(load_.pooled ? shared_ : own, node), node, todo);
      std::vector<Message> again;
      for (std::size_t i = 0; i < todo.size(); ++i) {
        if (!acknowledged[i]) again.push_back(todo[i]);
      }
      todo = std::move(again);
      node = todo.empty() ? home : node % nodes + 1;
    }
  }

  static Endpoint& at(std::vector<Endpoint>& endpoints, int node) {
    return endpoints[static_cast<std::size_t>(node) - 1];
  }

  std::vector<bool> deliver(Endpoint& endpoint, int node, std::span<const Message> part) {
    tally_.deliveries += static_cast<int>(part.size());
    std::vector<bool> acknowledged(part.size(), false);
    const auto take = [&](std::size_t i, const Result& result) {
      acknowledged[i] = action_for(result) == Action::acknowledge;
      tally_.consumed += result.outcome == Outcome::consumed ? 1 : 0;
      tally_.duplicates += result.outcome == Outcome::already_consumed ? 1 : 0;
      tally_.redelivered += acknowledged[i] ? 0 : 1;
      if (result.outcome == Outcome::failed) tally_.note(result.error);
      if (result.outcome == Outcome::parked) ++tally_.unexpected;
    };
    const auto handler = [](soci::session& sql, Delivery& d) { handle(sql, d); };
    try {
      if (!endpoint.consumer) open(endpoint, node);
      if (load_.batch > 1) {
        const auto results = endpoint.consumer->consume_batch(part, handler);
        for (std::size_t i = 0; i < results.size(); ++i) take(i, results[i]);
      } else {
        take(0, endpoint.consumer->consume(part[0], handler));
      }
    } catch (...) {
      tally_.redelivered += static_cast<int>(part.size());
      tally_.note(std::current_exception());
      std::this_thread::sleep_for(milliseconds(20));
    }
    // After an error, the thread opens its own session again, because it does not know whether the session is still
    // usable.
    if (!load_.pooled && std::ranges::count(acknowledged, false) > 0) endpoint = {};
    return acknowledged;
  }

  void open(Endpoint& endpoint, int node) {
    endpoint.session = db_.session(node);
    *endpoint.session << "set sql_mode = 'STRICT_ALL_TABLES', innodb_lock_wait_timeout = 5";
    *endpoint.session << "set session transaction isolation level read committed";
    if (!load_.session_setting.empty()) *endpoint.session << load_.session_setting;
    endpoint.consumer.emplace(*endpoint.session, "svc", options_for_consumer());
  }

  /// One effect in a table without a unique key. For every third key, the handler also changes a row that all consumers
  /// change.
  static void handle(soci::session& sql, Delivery& delivery) {
    thread_local std::mt19937 random{std::random_device{}()};
    add_effect(sql, delivery);
    const int number = std::stoi(delivery.message().business_key.substr(3));
    if (number % 3 == 0) sql << "update account set n = n + 1 where id = " << number % hot_rows;
    if (random() % 20 == 0) throw HandlerFailed();
  }

  void check_books() const {
    const int keys = tally_.keys;
    CHECK(tally_.unexpected == 0);
    CHECK(tally_.consumed <= keys);
    for (int node = 1; node <= nodes; ++node) {
      CAPTURE(node);
      CHECK(db_.number(node, "select count(*) from effect") == keys);
      CHECK(db_.number(node, "select count(distinct id) from effect") == keys);
      CHECK(db_.number(node, "select count(*) from txinbox_consumed_message where state = 'consumed'") == keys);
      CHECK(db_.number(node, "select sum(n) from account") == (keys + 2) / 3);
    }
  }

  const ClusterDatabase& db_;
  const Load& load_;
  Tally tally_;
  std::vector<Endpoint> shared_;
  std::atomic<int> released_ = load_.keys;  ///< The number of keys until now.
  std::atomic<bool> over_ = false;
};

}  // namespace

void run_load(const ClusterDatabase& db, const Load& load, const std::function<void()>& meanwhile) {
  Run(db, load).run(meanwhile);
}

}  // namespace txinbox::test
