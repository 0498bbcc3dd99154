// The rule of sources for the source in memory, which stands for a broker in the tests of `run`.

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "support/memory_broker.hpp"
#include "support/source_rule.hpp"

namespace txinbox::test {
namespace {

/// `Lanes`: 0 makes a queue.
template <std::size_t Lanes>
class Memory {
 public:
  std::unique_ptr<Source> open() { return std::make_unique<MemorySource>(broker_); }

  void publish(const SourceMessage& message) {
    broker_.publish(Lanes == 0 ? 0 : message.lane,
                    {.body = message.body, .key = message.key, .headers = message.headers});
  }

  std::vector<SourceMessage> take_letters(std::size_t /*count*/) const {
    std::vector<SourceMessage> letters;
    for (const MemoryBroker::Letter& each : broker_.letters()) letters.push_back({.body = each.body});
    return letters;
  }

  static std::vector<LetterRefusal> refusals() { return {LetterRefusal::failing}; }
  void refuse_letters(LetterRefusal /*why*/) { broker_.refuse_dead_letters(true); }
  void take_letters_again() { broker_.refuse_dead_letters(false); }

 private:
  MemoryBroker broker_{Lanes};
};

using MemoryLanes = Memory<2>;
using MemoryQueue = Memory<0>;

TEST_CASE_TEMPLATE_INVOKE(source_delivers_again, MemoryLanes, MemoryQueue);
TEST_CASE_TEMPLATE_INVOKE(source_outlives_refused_letters, MemoryLanes, MemoryQueue);
TEST_CASE_TEMPLATE_INVOKE(source_wakes, MemoryLanes, MemoryQueue);

}  // namespace
}  // namespace txinbox::test
