// The candidates of bench/peers/ in C++: txinbox, and a transaction by hand.
//
// Usage: txinbox_bench_peer consume|batch|set|by-hand
//   consume  TxConsumer::consume
//   batch    consume_batch of 100 messages with a handler of one message
//   set      consume_batch of 100 messages with a handler of all messages at once
//   by-hand  BEGIN, INSERT of the key, the work, COMMIT in the database's C API, prepared and without a guard
// TXINBOX_PEER_URL is the database's URL.

#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "../../business_work.hpp"
#include "../../by_hand.hpp"
#include "faults.hpp"
#include "protocol.hpp"

namespace txinbox::bench {
namespace {

std::string word_of(Action action) {
  if (action == Action::acknowledge) return "ack";
  return action == Action::dead_letter ? "dead" : "nack";
}

class Inbox final : public Candidate {
 public:
  Inbox(const std::string& url, const std::string& kind)
      : pool_(open_pool(url, {.connections = 16})), consumer_(pool_, "peer-" + kind), kind_(kind) {
    migrate(pool_.acquire());
  }

  std::string deliver(const std::string& key, int account, const std::string& fault) override {
    try {
      const Result result = consumer_.consume(
          {.business_key = key}, [&](soci::session& sql, Delivery&) { handle_with_fault(sql, account, fault); });
      return word_of(action_for(result)) + ' ' + std::string(to_string(result.outcome));
    } catch (const std::exception&) {
      return word_of(action_for(std::current_exception())) + ' ' + error_class(std::current_exception());
    }
  }

  int deliver(int /*worker*/, std::span<const Message> messages) override {
    if (kind_ == "consume") return action_for(consumer_.consume(messages.front(), one_)) == Action::acknowledge ? 1 : 0;
    const auto results =
        kind_ == "set" ? consumer_.consume_batch(messages, all_at_once_) : consumer_.consume_batch(messages, one_);
    int acknowledged = 0;
    for (const Result& each : results) {
      if (action_for(each) == Action::acknowledge) ++acknowledged;
    }
    return acknowledged;
  }

  std::size_t at_once() const override { return kind_ == "consume" ? 1 : 100; }

 private:
  Pool pool_;
  TxConsumer consumer_;
  std::string kind_;
  const Handler one_ = [work = business_handler()](soci::session& sql, Delivery& delivery) {
    count_handler_run();
    work(sql, delivery);
  };
  const BatchHandler all_at_once_ = [work = business_batch_handler()](soci::session& sql, auto deliveries) {
    count_handler_run(static_cast<int>(deliveries.size()));
    work(sql, deliveries);
  };
};

class ByHand final : public Candidate {
 public:
  explicit ByHand(const std::string& url) : pool_(open_pool(url, {.connections = 16})) {
    migrate(pool_.acquire());
    for (int worker = 0; worker < 8; ++worker) workers_.push_back(std::make_unique<Worker>(pool_));
  }

  std::string deliver(const std::string& key, int account, const std::string& fault) override {
    try {
      Worker worker(pool_);
      try {
        worker.api->begin();
        if (!worker.api->claim(key)) {
          worker.api->roll_back();
          return "ack duplicate";
        }
        handle_with_fault(worker.connection, account, fault);
        worker.api->commit();
        return "ack new";
      } catch (const std::exception&) {
        worker.api->roll_back();
        throw;
      }
    } catch (const std::exception& error) {
      return std::string("nack ") + error.what();
    }
  }

  int deliver(int worker, std::span<const Message> messages) override {
    if (consume_by_hand(*workers_[static_cast<std::size_t>(worker)]->api, messages.front())) count_handler_run();
    return 1;
  }

 private:
  struct Worker {
    explicit Worker(Pool& pool) : connection(pool.acquire()), api(client_api(connection)) {}
    Connection connection;
    std::unique_ptr<ClientApi> api;
  };

  Pool pool_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace
}  // namespace txinbox::bench

int main(int argc, char** argv) {
  const std::string kind = argc == 2 ? argv[1] : "";
  const char* url = std::getenv("TXINBOX_PEER_URL");
  if (url == nullptr || (kind != "consume" && kind != "batch" && kind != "set" && kind != "by-hand")) {
    std::cerr << "usage: TXINBOX_PEER_URL=URL txinbox_bench_peer consume|batch|set|by-hand\n";
    return 2;
  }
  try {
    std::unique_ptr<txinbox::bench::Candidate> candidate;
    if (kind == "by-hand") {
      candidate = std::make_unique<txinbox::bench::ByHand>(url);
    } else {
      candidate = std::make_unique<txinbox::bench::Inbox>(url, kind);
    }
    txinbox::bench::serve(*candidate);
  } catch (const std::exception& error) {
    std::cerr << "txinbox_bench_peer: " << error.what() << '\n';
    return 1;
  }
}
