// The dead-letter queue of a storm on redrive, and the checks of such a storm.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "torture/bad_deployment.hpp"
#include "torture/broker.hpp"
#include "torture/dead_letters.hpp"
#include "torture/redrive_checker.hpp"
#include "torture/redrive_messages.hpp"

using namespace txinbox;
using namespace txinbox::torture;

namespace {

const Plan plan(1);

/// The first key that keeps its payload or not, and whose dead letters are refused at first or not.
std::uint64_t key_with(bool keeps, bool is_refused) {
  for (std::uint64_t i = 0;; ++i) {
    if (keeps_payload(plan.seed(), i) == keeps && is_refused_at_first(plan.seed(), i) == is_refused) return i;
  }
}

/// The message that `redrive` publishes for a dead letter.
RedriveMessage republication(const RedriveMessage& letter, const std::string& redrives = "1") {
  return {.id = letter.id,
          .body = letter.body,
          .destination = redrive_queue,
          .headers = {{"txinbox-redrives", redrives}, {"txinbox-redrive", "a call"}}};
}

std::string header(const RedriveMessage& message, const std::string& name) {
  for (const auto& [each, value] : message.headers) {
    if (each == name) return value;
  }
  return {};
}

/// A dead-letter queue with one dead letter, which operator 1 holds.
struct OneLetter {
  explicit OneLetter(bool is_refused = false) {
    arrival.key = key_with(false, is_refused);
    letters.add(arrival);
    held = letters.take(1, 10).at(0);
  }

  bool names(const std::string& what) const { return letters.wrong().size() == 1 && letters.wrong()[0].what == what; }

  DeadLetters letters{plan};
  Arrival arrival{.copy = 3, .tries = 2};
  RedriveMessage held;
};

}  // namespace

TEST_CASE("a dead letter is published again with one redrive more, and is gone when it is acknowledged") {
  OneLetter one;
  CHECK(header(one.held, "txinbox-consumer") == "txinbox-torture");
  CHECK(header(one.held, "txinbox-key") == Plan::business_key(one.arrival.key));
  CHECK(header(one.held, "txinbox-redrives").empty());
  CHECK(one.letters.take(2, 10).empty());  // operator 1 holds it
  const auto again = one.letters.publish(1, republication(one.held));
  REQUIRE(again.has_value());
  CHECK(*again == Arrival{.key = one.arrival.key, .copy = 3, .tries = 3, .redrives = 1});
  CHECK(one.letters.size() == 1);
  one.letters.acknowledge(1, one.held.id);
  CHECK(one.letters.size() == 0);
  CHECK(one.letters.wrong().empty());

  // It fails again. The dead letter says which call has published it.
  one.letters.add(*again);
  const auto second = one.letters.take(2, 10);
  REQUIRE(second.size() == 1);
  CHECK(header(second[0], "txinbox-redrives") == "1");
  CHECK(header(second[0], "txinbox-redrive") == "a call");
  CHECK(one.letters.publish(2, republication(second[0], "2")).has_value());
  CHECK(one.letters.wrong().empty());
}

TEST_CASE("the dead letters of an operator that was killed are given to another, and the kill is counted") {
  OneLetter one;
  one.letters.lost(1);
  CHECK(one.letters.tally().kills_between == 0);  // it had published nothing
  CHECK(one.letters.take(2, 10).at(0).id == one.held.id);
  CHECK(one.letters.publish(2, republication(one.held)).has_value());
  CHECK(one.letters.has_unacknowledged(2));
  one.letters.lost(2);
  CHECK(one.letters.tally().kills_between == 1);
  CHECK(one.letters.take(3, 10).size() == 1);
  CHECK_FALSE(one.letters.has_unacknowledged(3));
  CHECK(one.letters.publish(3, republication(one.held)).has_value());
  one.letters.acknowledge(3, one.held.id);
  CHECK(one.letters.tally().published == 1);
  CHECK(one.letters.tally().published_again == 1);
  CHECK(one.letters.wrong().empty());
}

TEST_CASE("a dead letter that was refused and is acknowledged nevertheless is found") {
  OneLetter one(true);
  CHECK_FALSE(one.letters.publish(1, republication(one.held)).has_value());
  CHECK(one.letters.tally().refused == 1);
  SUBCASE("acknowledged") {
    one.letters.acknowledge(1, one.held.id);
    CHECK(one.names("a dead letter was acknowledged and not published"));
  }
  SUBCASE("published by a second attempt") {
    CHECK(one.letters.publish(1, republication(one.held)).has_value());
    one.letters.acknowledge(1, one.held.id);
    CHECK(one.letters.wrong().empty());
  }
}

TEST_CASE("a publication of something that is no dead letter of the operator is found") {
  const std::string what = "a message was published that was no dead letter of the operator";
  OneLetter one;
  RedriveMessage message = republication(one.held);
  SUBCASE("another operator holds it") {
    CHECK_FALSE(one.letters.publish(2, message).has_value());
    CHECK(one.names(what));
  }
  SUBCASE("there is no such dead letter") {
    message.id += 1;
    CHECK_FALSE(one.letters.publish(1, message).has_value());
    CHECK(one.names(what));
  }
  SUBCASE("it was given back") {
    one.letters.give_back(1);
    CHECK_FALSE(one.letters.publish(1, message).has_value());
    CHECK(one.names(what));
  }
}

TEST_CASE("a publication with another body, to another queue, or with a wrong count is found") {
  OneLetter one;
  RedriveMessage message = republication(one.held);
  SUBCASE("body") { message.body = "7 7 7 7"; }
  SUBCASE("queue") { message.destination = "elsewhere"; }
  SUBCASE("count") { message.headers[0].second = "2"; }
  (void)one.letters.publish(1, message);
  CHECK(one.names("the message that was published again"));
}

TEST_CASE("a message whose payload the database keeps becomes no dead letter, and comes from the outbox") {
  DeadLetters letters(plan);
  const Arrival kept{.key = key_with(true, false), .copy = 2, .tries = 1};
  letters.add(kept);
  CHECK(letters.size() == 0);
  CHECK(letters.tally().kept_payloads == 1);
  const auto again = letters.publish(1, {.body = payload_of(kept)});
  REQUIRE(again.has_value());
  CHECK(again->key == kept.key);
  CHECK(again->redrives == 1);
  CHECK(letters.wrong().empty());

  CHECK_FALSE(letters.publish(1, {.body = payload_of({.key = key_with(false, false)})}).has_value());
  CHECK_FALSE(letters.publish(1, {.body = "no payload"}).has_value());
  CHECK(letters.wrong().size() == 2);
  CHECK(letters.tally().from_outbox == 1);
}

TEST_CASE("the broker gives parked messages to the dead-letter queue, and delivers those that come back") {
  const Answer parked{.outcome = Outcome::parked, .action = Action::dead_letter};
  DeadLetters letters(plan);
  Broker broker(plan, 100'000, &letters);
  const std::uint64_t key = key_with(false, false);
  broker.send(key + 1);
  std::optional<Arrival> first;
  for (const Arrival& each : broker.take(100'000, {})) {
    broker.answered(each, parked, {});
    if (each.key == key && each.copy == 0) first = each;
  }
  REQUIRE(first.has_value());
  CHECK(broker.is_done());
  CHECK(broker.has_settled_all_once());
  CHECK(broker.wrong().empty());
  CHECK(broker.keys()[key].outstanding == 0);
  first->redrives = 1;
  broker.send_again(*first);
  CHECK_FALSE(broker.is_done());
  CHECK(broker.keys()[key].outstanding == 1);
  CHECK(broker.has_settled_all_once());
  REQUIRE(broker.take(10, {}) == std::vector<Arrival>{*first});
  broker.answered(*first, {.outcome = Outcome::consumed, .action = Action::acknowledge}, {});
  CHECK(broker.keys()[key].outstanding == 0);

  Broker without(plan, 1);
  without.send(1);
  without.answered(without.take(1, {}).at(0), parked, {});
  REQUIRE(without.wrong().size() == 1);
  CHECK(without.wrong()[0].what == "became a dead letter");
}

TEST_CASE("a rest of dead letters, of messages in the outbox, and of failed messages is found") {
  CHECK(check_redrive(10, {}).empty());
  const auto letters = check_redrive(10, {.letters = 2});
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].what == "dead letters that are left");
  const auto outbox = check_redrive(10, {.outbox = 1});
  REQUIRE(outbox.size() == 1);
  CHECK(outbox[0].what == "messages that were never published");
  FailedMessage failed;
  failed.state = FailedState::parked;
  failed.attempts = 2;
  failed.business_key = Plan::business_key(9);
  const auto found = check_redrive(10, {.failed = {failed}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].what == "a failed message that is left");
  CHECK(found[0].found == "parked, 2 attempts");
  CHECK(check_redrive(9, {.failed = {failed}}).empty());  // a key of an earlier storm
}

TEST_CASE("what operators and the broker say to each other is read as it was written") {
  const RedriveMessage message{
      .id = 7, .body = "1 2 3 4", .destination = "queue", .headers = {{"a", "b"}, {"a", "\xc3\xb3"}}};
  const auto question = read_question(to_line(Question{.ask = Ask::publish, .most = 5, .messages = {message}}));
  REQUIRE(question.has_value());
  CHECK(question->ask == Ask::publish);
  CHECK(question->most == 5);
  CHECK(question->messages == std::vector<RedriveMessage>{message});
  CHECK(question->fatal.empty());
  const auto answer = read_question_answer(to_line(QuestionAnswer{.letters = {message}, .accepted = {true, false}}));
  REQUIRE(answer.has_value());
  CHECK(answer->letters == std::vector<RedriveMessage>{message});
  CHECK(answer->accepted == std::vector<bool>{true, false});
  const std::string line = to_line(Question{});
  CHECK_FALSE(read_question(std::string_view(line).substr(0, line.size() / 2)).has_value());

  const Arrival arrival{.key = 12'345'678'901, .copy = 9, .tries = 21, .redrives = 3};
  CHECK(read_arrival(payload_of(arrival)) == arrival);
  for (const char* bad : {"", "1", "1 2 3", "1 2 3 ", "1 2 3 x", "1 2 3 4 5", " 1 2 3 4", "1 2 -3 4"}) {
    CHECK_FALSE(read_arrival(bad).has_value());
  }
}

TEST_CASE("some deployments fail for all of their keys, some for about half, and some for none") {
  int all = 0;
  int some = 0;
  int none = 0;
  for (std::uint64_t deployment = 0; deployment < 200; ++deployment) {
    int failing = 0;
    for (std::uint64_t i = 0; i < 10; ++i) failing += fails_until_repair(7, 10 * deployment + i) ? 1 : 0;
    ++(failing == 10 ? all : failing == 0 ? none : some);
  }
  CHECK(all > 20);
  CHECK(some > 20);
  CHECK(none > 20);
}
