#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "torture/broker.hpp"

using namespace txinbox;
using namespace txinbox::torture;
using namespace std::chrono_literals;

namespace {

const Broker::Time start{};
const Broker::Time much_later = start + 1h;

const Answer consumed{.outcome = Outcome::consumed, .action = Action::acknowledge};
const Answer duplicate{.outcome = Outcome::already_consumed, .action = Action::acknowledge};

/// A key of the plan that stores a result or not, and has content or not.
std::uint64_t key_with(const Plan& plan, bool stores, bool has_content, int copies = 0) {
  for (std::uint64_t i = 0;; ++i) {
    const KeyPlan key = plan.key(i);
    if (key.stores == stores && key.has_content == has_content && (copies == 0 || key.copies == copies)) return i;
  }
}

/// A broker whose next answers are all for one key.
struct OneKey {
  explicit OneKey(bool stores = false, bool has_content = false, int copies = 2)
      : key(key_with(plan, stores, has_content, copies)) {
    broker.send(key + 1);
    for (const Arrival& arrival : broker.take(100'000, start)) {
      if (arrival.key == key) arrivals.push_back(arrival);
    }
  }

  Plan plan{1};
  Broker broker{plan, 100'000};
  std::uint64_t key;
  std::vector<Arrival> arrivals;
};

}  // namespace

TEST_CASE("each copy is delivered until it is acknowledged, however it is answered before") {
  const Plan plan(1);
  Broker broker(plan, 40);
  std::map<std::uint64_t, int> acknowledged;
  int asked = 0;
  Broker::Time now = start;
  while (true) {
    broker.send(100);
    if (broker.keys().size() == 100) broker.close();
    now += 1s;
    const auto taken = broker.take(7, now);
    if (taken.empty() && broker.is_done()) break;
    for (const Arrival& arrival : taken) {
      switch (++asked % 6) {
        case 0:
          broker.lost(arrival);
          break;
        case 1:
          broker.answered(arrival, {.action = Action::redeliver, .failure = Failure::transient}, now);
          break;
        case 2:
          broker.answered(arrival, {.action = Action::redeliver, .failure = Failure::by_handler}, now);
          break;
        case 3:
          broker.answered(arrival, {.outcome = Outcome::not_run, .action = Action::redeliver}, now);
          break;
        default:
          if (arrival.is_altered) {
            broker.answered(arrival, {.outcome = Outcome::conflict, .action = Action::dead_letter}, now);
            break;
          }
          broker.answered(arrival,
                          {.outcome = duplicate.outcome,
                           .action = Action::acknowledge,
                           .stored = plan.key(arrival.key).stores ? std::optional<std::string>("1-1") : std::nullopt},
                          now);
          if (arrival.copy < 100) ++acknowledged[arrival.key];
      }
    }
  }
  for (std::uint64_t key = 0; key < 100; ++key) {
    CHECK(acknowledged[key] == plan.key(key).copies);
    CHECK(broker.keys()[key].is_acknowledged);
    CHECK(broker.keys()[key].outstanding == 0);
  }
  CHECK(broker.wrong().empty());
  CHECK(broker.tally().lost_with_worker > 0);
  CHECK(broker.tally().handler_failures > 0);
  CHECK(broker.tally().deliveries == static_cast<std::uint64_t>(asked));
}

TEST_CASE("a window of copies is outstanding, and no more keys are sent until some are acknowledged") {
  const Plan plan(1);
  Broker broker(plan, 20);
  broker.send(1'000);
  const auto sent = broker.keys().size();
  CHECK(sent < 20);
  broker.send(1'000);
  CHECK(broker.keys().size() == sent);
  const auto taken = broker.take(1'000, start);
  CHECK(taken.size() >= 20);
  for (const Arrival& arrival : taken) broker.answered(arrival, {.action = Action::redeliver}, start);
  broker.send(1'000);
  CHECK(broker.keys().size() == sent);
}

TEST_CASE("a delivery that failed by a transient error is delayed") {
  OneKey one;
  one.broker.answered(one.arrivals[0], {.action = Action::redeliver, .failure = Failure::transient}, start + 1s);
  one.broker.answered(one.arrivals[1], {.action = Action::redeliver, .failure = Failure::unexpected}, start + 1s);
  CHECK(one.broker.take(10, start).empty());
  CHECK(one.broker.take(10, much_later).size() == 2);
}

TEST_CASE("a delivery that is in progress elsewhere is delayed for as long as the answer says") {
  OneKey one;
  const Answer in_progress{.outcome = Outcome::in_progress, .action = Action::redeliver, .retry_after = 500ms};
  one.broker.answered(one.arrivals[0], in_progress, start);
  CHECK(one.broker.tally().in_progress == 1);
  CHECK(one.broker.take(10, start + 499ms).empty());
  CHECK(one.broker.take(10, start + 500ms).size() == 1);
}

TEST_CASE("acknowledged messages are sometimes delivered again, also with other content") {
  const Plan plan(1);
  Broker broker(plan, 100'000);
  broker.send(2'000);
  for (const Arrival& arrival : broker.take(100'000, start)) broker.answered(arrival, duplicate, start);
  int same = 0;
  int altered = 0;
  for (const Arrival& arrival : broker.take(100'000, much_later)) {
    ++(arrival.is_altered ? altered : same);
    if (arrival.is_altered) CHECK(plan.key(arrival.key).has_content);
  }
  CHECK(same > 100);
  CHECK(altered > 10);
}

TEST_CASE("a key that is reported as consumed twice is an imbalance") {
  OneKey one;
  one.broker.answered(one.arrivals[0], consumed, start);
  CHECK(one.broker.wrong().empty());
  one.broker.answered(one.arrivals[1], consumed, start);
  REQUIRE(one.broker.wrong().size() == 1);
  CHECK(one.broker.wrong()[0] ==
        Imbalance{Plan::business_key(one.key), "was reported as consumed more than once", "1", "2"});
}

TEST_CASE("a conflict is correct for different content, and an imbalance for equal content") {
  const Answer conflict{.outcome = Outcome::conflict, .action = Action::dead_letter};
  OneKey one(false, true);
  one.broker.answered(one.arrivals[0], conflict, start);
  REQUIRE(one.broker.wrong().size() == 1);
  CHECK(one.broker.wrong()[0].found == "conflict");

  Arrival altered = one.arrivals[1];
  altered.is_altered = true;
  one.broker.answered(altered, conflict, start);
  CHECK(one.broker.wrong().size() == 1);
  CHECK(one.broker.tally().conflicts == 1);
}

TEST_CASE("different content that counts as a duplicate is an imbalance, and so is a parked key") {
  OneKey one(false, true);
  Arrival altered = one.arrivals[0];
  altered.is_altered = true;
  one.broker.answered(altered, duplicate, start);
  one.broker.answered(one.arrivals[1], {.outcome = Outcome::parked, .action = Action::dead_letter}, start);
  REQUIRE(one.broker.wrong().size() == 2);
  CHECK(one.broker.wrong()[0].expected == "conflict");
  CHECK(one.broker.wrong()[1].found == "parked");
}

TEST_CASE("all consumers report the same stored result, or none if none was stored") {
  const auto told = [](const char* stored) {
    return Answer{.outcome = Outcome::already_consumed, .action = Action::acknowledge, .stored = stored};
  };
  OneKey stores(true);
  stores.broker.answered(stores.arrivals[0], told("1-1"), start);
  CHECK(stores.broker.wrong().empty());
  stores.broker.answered(stores.arrivals[1], told("1-2"), start);
  CHECK(stores.broker.wrong().size() == 1);
  CHECK(stores.broker.keys()[stores.key].stored == "1-1");

  OneKey missing(true);
  missing.broker.answered(missing.arrivals[0], duplicate, start);
  CHECK(missing.broker.wrong().size() == 1);

  OneKey unasked(false);
  unasked.broker.answered(unasked.arrivals[0], told("1-1"), start);
  CHECK(unasked.broker.wrong().size() == 1);
}
