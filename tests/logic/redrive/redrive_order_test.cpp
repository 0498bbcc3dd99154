// The dead letters that `redrive` acknowledges, and those that it gives up.

#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/redrive.hpp>
#include <txinbox/txinbox.hpp>

#include "logic/redrive/dead_letters.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("an acknowledgement of a lane never covers a dead letter that is left") {
  double rate = 0;
  SUBCASE("all in one batch") {}
  SUBCASE("each in a batch of its own") { rate = 5; }
  DeadLetters dead(2);
  dead.add("a", {}, 0);
  dead.add("left", {{"txinbox-source", ""}}, 0);
  dead.add("b", {}, 0);
  dead.add("c", {}, 1);
  (void)dead.run({.rate = rate});
  CHECK(dead.published == std::vector<std::string>{"a", "b", "c"});
  CHECK(dead.letters.acknowledged(0) == 1);
  CHECK(dead.letters.acknowledged(1) == 1);
  CHECK(dead.letters.wrong_acknowledgements() == 0);
  (void)dead.run({.to = "orders"});
  CHECK(dead.published == std::vector<std::string>{"a", "b", "c", "left", "b"});
  CHECK(dead.letters.acknowledged(0) == 3);
}

TEST_CASE("what the broker does not confirm stays a dead letter, and is tried again") {
  DeadLetters dead;
  dead.add("a");
  dead.add("b");
  int calls = 0;
  MemorySource source(dead.letters);
  const Republisher publish = [&](std::span<const Republication> messages) {
    if (++calls == 1) throw std::runtime_error("the broker is away");
    if (calls == 2) dead.answers["a"] = {.status = PublishStatus::postponed};
    if (calls == 3) dead.answers["a"] = {.status = PublishStatus::failed, .error = "not now"};
    if (calls == 4) dead.answers.clear();
    CHECK(dead.letters.acknowledged() == (calls == 2 ? 0 : 1));
    return dead.publish(messages);
  };
  const RedriveSummary summary = redrive(source, publish, dead.pool, {.idle_exit = 20ms});
  CHECK(summary.redriven == 2);
  CHECK(dead.published == std::vector<std::string>{"b", "a"});
  CHECK(dead.letters.acknowledged() == 2);
}

TEST_CASE("a message that fails again in the same call is left") {
  DeadLetters dead;
  dead.add("a");
  const RedriveSummary summary = dead.run({.observer = [&](const RedriveEvent& event) {
    if (event.type != RedriveEventType::redriven) return;
    const auto& added = dead.added.back();
    dead.add("a",
             {{"txinbox-redrives", added.at("txinbox-redrives")}, {"txinbox-redrive", added.at("txinbox-redrive")}});
  }});
  CHECK(summary.redriven == 1);
  CHECK(dead.left["a"] == "it was published again, and failed again");
  CHECK(dead.run().redriven == 1);
}

}  // namespace
}  // namespace txinbox::test
