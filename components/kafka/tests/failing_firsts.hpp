#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/soci/execute.hpp>
#include <txinbox/txinbox.hpp>

#include "publisher.hpp"
#include "support/effects.hpp"
#include "txinbox/kafka.hpp"

namespace txinbox::test {

using namespace std::chrono_literals;

/// A source of Kafka that counts its rewinds, and the messages that are in memory.
class WatchedSource final : public Source {
 public:
  explicit WatchedSource(const KafkaOptions& options) : source_(open_kafka(options)) {
    source_->on_event([this](const SourceEvent& event) { report(event.type, event.text); });
  }

  std::vector<Incoming> poll(std::size_t max, std::chrono::milliseconds wait) override {
    std::vector<Incoming> got = source_->poll(max, wait);
    std::erase_if(alive_, [](const std::weak_ptr<const void>& each) { return each.expired(); });
    for (const Incoming& each : got) alive_.emplace_back(each.owner);
    most_alive = std::max(most_alive, alive_.size());
    return got;
  }
  void acknowledge(std::span<const Incoming* const> messages) override { source_->acknowledge(messages); }
  bool has_dead_letters() const override { return source_->has_dead_letters(); }
  void dead_letter(std::span<DeadLetter> letters) override { source_->dead_letter(letters); }
  bool holds(const Incoming& message) const override { return source_->holds(message); }
  void pause(std::uint64_t lane) override { source_->pause(lane); }
  void resume(std::uint64_t lane) override { source_->resume(lane); }
  bool can_rewind() const override { return source_->can_rewind(); }
  void rewind(const Incoming& first) override {
    ++rewinds;
    source_->rewind(first);
  }
  void wake() noexcept override { source_->wake(); }
  SourceStatus status() override { return source_->status(); }
  void close() noexcept override { source_->close(); }

  std::size_t most_alive = 0;
  int rewinds = 0;

 private:
  std::vector<std::weak_ptr<const void>> alive_;
  std::unique_ptr<Source> source_;
};

struct FailingFirsts {
  int partitions;
  int messages_each;
  int failures_each;  ///< How often the first message of each partition fails, but for each fourth partition.
};

/// Consumes partitions whose first message fails at first, with little room. Each message must take effect once, in the
/// order of its partition, and few messages may be in memory. Returns the number of rewinds.
inline int consume_with_failing_firsts(const KafkaOptions& kafka, const FailingFirsts& what) {
  const int total = what.partitions * what.messages_each;
  {
    Publisher publisher(kafka.brokers);
    for (int i = 0; i < what.messages_each; ++i) {
      for (int partition = 0; partition < what.partitions; ++partition) {
        publisher.publish(kafka.topics.front(),
                          {.body = std::to_string(partition) + "/" + std::to_string(i), .partition = partition});
      }
    }
    publisher.flush();
  }
  const EffectDatabase db;
  db.run("create table position (id integer primary key, next integer not null)");
  for (int i = 0; i < what.partitions; ++i) db.run("insert into position values (" + std::to_string(i) + ", 0)");
  Pool pool = db.pool(2);
  WatchedSource source(kafka);
  CHECK(source.can_rewind());
  std::vector<int> failures(static_cast<std::size_t>(what.partitions));
  std::stop_source stop;
  RunOptions options{
      .batch = 10, .max_in_flight = 40, .max_waiting = 20, .backoff = 20ms, .max_backoff = 200ms, .idle_exit = 30s};
  options.dead_letter = [](const DeadLetter&) {};
  std::size_t acknowledged = 0;
  const auto listener = on_event([&](const RunEvent& event) {
    if (event.type != RunEventType::acknowledged) return;
    acknowledged += event.count;
    if (acknowledged == static_cast<std::size_t>(total)) stop.request_stop();
  });
  TxConsumer consumer(pool, "svc", {.stop = stop.get_token(), .listeners = {listener}});
  int out_of_order = 0;
  const RunSummary summary = run(
      source, consumer, [](const Incoming& in) { return Message{.business_key = std::string(in.body)}; },
      [&](soci::session& sql, Delivery& delivery) {
        const std::string& key = delivery.message().business_key;
        const auto slash = key.find('/');
        const int partition = std::stoi(key.substr(0, slash));
        const int number = std::stoi(key.substr(slash + 1));
        if (number == 0 && partition % 4 != 3 &&
            ++failures.at(static_cast<std::size_t>(partition)) <= what.failures_each) {
          throw std::runtime_error("not yet");
        }
        const long long changed =
            execute(sql, delivery, "update position set next = :new where id = :id and next = :old", number + 1,
                    partition, number);
        if (changed != 1) ++out_of_order;
      },
      options);
  CHECK(out_of_order == 0);
  CHECK(summary.end == RunEnd::stopped);
  CHECK(summary.acknowledged == static_cast<std::uint64_t>(total));
  CHECK(summary.consumed == static_cast<std::uint64_t>(total));
  CHECK(db.number("select count(*) from position where next = " + std::to_string(what.messages_each)) ==
        what.partitions);
  CHECK(source.rewinds > 0);
  // The messages in flight, those that wait, one message of each partition, and the messages of one poll.
  CHECK(source.most_alive <= 40U + 20U + static_cast<std::size_t>(what.partitions) + 40U);
  return source.rewinds;
}

}  // namespace txinbox::test
