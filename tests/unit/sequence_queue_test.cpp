// Which messages run together: the queue of the sequences that are ready.

#include "run/sequence_queue.hpp"

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace txinbox::test {
namespace {

using detail::Entry;
using detail::EntryPtr;
using detail::Job;
using Time = detail::SequenceQueue::Clock::time_point;

class Queue {
 public:
  /// Adds a message, whose handler has failed so often, at the end of its lane.
  void add(std::uint64_t lane, int failures) {
    const auto entry = std::make_shared<Entry>();
    entry->incoming.lane = lane;
    entry->failures = failures;
    entry->held = held_.insert(held_.end(), entry);
    entry->sequence = queue_.sequence_for(entry->incoming);
    entry->sequence->waiting.push_back(entry.get());
    queue_.enqueue(entry->sequence, now_);
  }

  /// Takes a job, and returns it as text: the lane of each message, with "!" if its handler has failed.
  std::string take(std::size_t most = 100) {
    std::string text;
    const Job job = queue_.take(now_, most);
    for (const EntryPtr& each : job) {
      text += std::to_string(*each->incoming.lane) + (each->failures > 0 ? "! " : " ");
    }
    for (const EntryPtr& each : job) {
      each->sequence->is_running = false;
      queue_.enqueue(each->sequence, now_);
    }
    return text;
  }

 private:
  const Time now_{};
  std::list<EntryPtr> held_;
  detail::SequenceQueue queue_{Ordering::lane};
};

TEST_CASE("messages whose handler has failed run together, and not beside messages whose handler has not") {
  Queue queue;
  queue.add(1, 0);
  queue.add(2, 1);
  queue.add(3, 0);
  queue.add(4, 5);
  queue.add(2, 0);  // it waits behind the message that has failed
  CHECK(queue.take() == "1 3 ");
  CHECK(queue.take() == "2! 4! ");
  CHECK(queue.take() == "2 ");
  CHECK(queue.take() == "");
}

TEST_CASE("messages whose handler has failed take turns with the others, so neither kind waits for all of the other") {
  Queue queue;
  for (std::uint64_t lane = 0; lane < 3; ++lane) queue.add(lane, 0);
  for (std::uint64_t lane = 10; lane < 14; ++lane) queue.add(lane, 1);
  std::vector<std::string> jobs;
  for (int i = 0; i < 7; ++i) jobs.push_back(queue.take(1));
  CHECK(jobs == std::vector<std::string>{"0 ", "10! ", "1 ", "11! ", "2 ", "12! ", "13! "});
}

}  // namespace
}  // namespace txinbox::test
