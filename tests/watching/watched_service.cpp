// A service whose metrics all move: it consumes from a broker in memory, fails now and then, has leases, an outbox and
// a purge, and serves /metrics. For tests/watching.sh.
//
// Usage: watched_service URL PORT       It runs until standard input ends.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <httplib.h>
#include <soci/soci.h>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/memory_broker.hpp"

namespace stock {

/// An error that a service declares transient.
struct Busy : std::runtime_error {
  Busy() : std::runtime_error("the other service is busy") {}
};

}  // namespace stock

namespace {

using namespace std::chrono_literals;
using namespace txinbox;

/// A source that also says how many messages wait, as the sources of real brokers do.
class WatchedSource : public test::MemorySource {
 public:
  WatchedSource(test::MemoryBroker& broker, const std::atomic<std::size_t>& published)
      : MemorySource(broker), broker_(broker), published_(published) {}

  SourceStatus status() override {
    SourceStatus status = MemorySource::status();
    status.name = "memory orders";
    const std::size_t published = published_;
    status.lag = published - std::min(published, broker_.acknowledged_in_all());
    return status;
  }

 private:
  test::MemoryBroker& broker_;
  const std::atomic<std::size_t>& published_;
};

class WatchedService {
 public:
  explicit WatchedService(const std::string& url) : pool_(open_pool(url, {.connections = 8})) {
    migrate(pool_.acquire().session());
  }

  void start() {
    const auto stop = [this] { return stop_.get_token(); };
    threads_.emplace_back([this] { publish_orders(); });
    threads_.emplace_back([this, stop] { consume_orders(stop()); });
    threads_.emplace_back([this] { consume_stock(); });
    threads_.emplace_back([this] { send_mails(); });
    threads_.emplace_back([this] { count_outbox(); });
  }

  void end() {
    stop_.request_stop();
    threads_.clear();
  }

  std::string metrics() const { return metrics_->text(); }

 private:
  Listeners listeners() const { return {metrics_}; }
  bool goes_on() const { return !stop_.stop_requested(); }

  /// One order in five is a copy, one in fifty has other content, and one in a hundred always fails.
  void publish_orders() {
    for (int i = 0; goes_on(); ++i) {
      const int order = i % 5 == 4 ? i - 1 : i;
      const std::string body = std::to_string(order) + (i % 50 == 49 ? "/other" : "/same");
      broker_.publish(i % 4, {.body = body});
      ++published_;
      std::this_thread::sleep_for(10ms);
    }
  }

  void consume_orders(const std::stop_token& stop) {
    WatchedSource source(broker_, published_);
    TxConsumer consumer(pool_, "order-service", {.stop = stop, .listeners = listeners(), .max_attempts = 2});
    const auto message_of = [](const Incoming& in) {
      const std::string body(in.body);
      return Message{.business_key = body.substr(0, body.find('/')), .content = body};
    };
    const Handler handler = [](soci::session& sql, Delivery& delivery) {
      const std::string& key = delivery.message().business_key;
      if (key.ends_with("50")) throw std::runtime_error("this order cannot be booked");
      Outbox::add(sql, OutgoingMessage{.topic = "stock", .key = key, .payload = "{}"});
    };
    (void)run(source, consumer, message_of, handler, {.backoff = 100ms, .status_interval = 500ms});
  }

  /// One message in ten meets a busy service once.
  void consume_stock() {
    ConsumerOptions options{.retry = {.initial_backoff = 5ms}, .listeners = listeners()};
    options.is_transient = [](const std::exception_ptr& error) {
      try {
        std::rethrow_exception(error);
      } catch (const stock::Busy&) {
        return true;
      } catch (...) {
        return false;
      }
    };
    TxConsumer consumer(pool_, "stock-service", options);
    for (int i = 0; goes_on(); ++i) {
      const std::string key = "stock-" + std::to_string(i);
      (void)consumer.consume({.business_key = key}, [&](soci::session&, Delivery& delivery) {
        if (i % 10 == 0 && delivery.attempt() == 1) throw stock::Busy();
      });
      std::this_thread::sleep_for(20ms);
    }
  }

  void send_mails() {
    LeaseConsumer consumer(pool_, "mail-service", {}, {.listeners = listeners()});
    for (int i = 0; goes_on(); ++i) {
      (void)consumer.consume({.business_key = "mail-" + std::to_string(i)}, [](Lease&) {});
      std::this_thread::sleep_for(50ms);
    }
  }

  /// The broker of the outbox refuses one message in twenty.
  void count_outbox() {
    std::atomic<int> published = 0;
    const auto publish = [&](std::span<const OutgoingMessage> messages) {
      std::vector<PublishResult> results(messages.size());
      for (PublishResult& each : results) {
        if (++published % 20 == 0) each = {.status = PublishStatus::failed, .error = "the broker refuses it"};
      }
      return results;
    };
    const OutboxRelay relay(pool_, publish, {.initial_backoff = 500ms, .listeners = listeners()});
    PurgerOptions purging{.interval = 2s};
    purging.purge.listeners = listeners();
    const Purger purger(pool_, 5s, purging);
    while (goes_on()) {
      metrics_->set(outbox_status(pool_.acquire().session()));
      std::this_thread::sleep_for(500ms);
    }
  }

  Pool pool_;
  const std::shared_ptr<Metrics> metrics_ = std::make_shared<Metrics>();
  test::MemoryBroker broker_{4};
  std::atomic<std::size_t> published_ = 0;
  std::stop_source stop_;
  std::vector<std::jthread> threads_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: watched_service URL PORT\n";
    return 2;
  }
  try {
    WatchedService service(argv[1]);
    service.start();
    httplib::Server server;
    server.Get("/metrics", [&](const httplib::Request&, httplib::Response& response) {
      response.set_content(service.metrics(), std::string(Metrics::content_type).c_str());
    });
    std::jthread serving([&] { server.listen("127.0.0.1", std::stoi(argv[2])); });
    for (std::string line; std::getline(std::cin, line);) {
    }
    server.stop();
    service.end();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "watched_service: " << error.what() << '\n';
    return 1;
  }
}
