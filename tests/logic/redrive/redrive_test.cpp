// `redrive`, with a dead-letter queue in memory and a database.

#include <chrono>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/operations.hpp>
#include <txinbox/redrive.hpp>
#include <txinbox/txinbox.hpp>

#include "logic/redrive/dead_letters.hpp"
#include "support/memory_broker.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("redrive publishes dead letters again, lets their messages run, and acknowledges them") {
  DeadLetters dead;
  dead.add("a");
  dead.add("b", {{"txinbox-redrives", "1"}, {"txinbox-redrive", "of another call"}});
  CHECK(dead.state_of("a") == "parked");
  const RedriveSummary summary = dead.run();
  CHECK(summary.redriven == 2);
  CHECK(summary.left == 0);
  CHECK(summary.end == RedriveEnd::at_end);
  CHECK(dead.published == std::vector<std::string>{"a", "b"});
  CHECK(dead.destinations == std::vector<std::string>{"orders", "orders"});
  CHECK(dead.added[0].at("txinbox-redrives") == "1");
  CHECK(dead.added[1].at("txinbox-redrives") == "2");
  CHECK(dead.added[0].at("txinbox-redrive") == dead.added[1].at("txinbox-redrive"));
  CHECK(dead.state_of("a").empty());
  CHECK(dead.letters.acknowledged() == 2);
  CHECK(dead.run().redriven == 0);
}

TEST_CASE("a dead letter that cannot be published again is left, with the reason, and the others go on") {
  DeadLetters dead;
  dead.add("foreign", {{"txinbox-consumer", ""}});
  dead.add("elsewhere", {{"txinbox-consumer", "another-svc"}});
  dead.add("no place", {{"txinbox-source", ""}});
  dead.add("conflict", {{"txinbox-reason", "conflict"}});
  dead.add("without headers", {{"txinbox-dropped-headers", "3"}});
  dead.add("too often", {{"txinbox-redrives", "3"}});
  dead.add("torn");
  dead.db.run("update txinbox_consumed_message set state = 'torn' where business_key = 'torn'");
  dead.add("discarded");
  dead.db.run("update txinbox_consumed_message set state = 'discarded' where business_key = 'discarded'");
  dead.add("too large");
  dead.answers["too large"] = {.status = PublishStatus::rejected, .error = "it has too many bytes"};
  dead.add("good");
  const RedriveSummary summary = dead.run();
  CHECK(dead.published == std::vector<std::string>{"good"});
  CHECK(summary.redriven == 1);
  CHECK(summary.left == 9);
  CHECK(summary.why.size() == 9);
  CHECK(dead.letters.acknowledged() == 1);
  CHECK(dead.left["foreign"] == "it does not say which consumer could not consume it; name the consumer");
  CHECK(dead.left["elsewhere"] ==
        "nothing is recorded for its consumer in this database; name the consumer, if it is right");
  CHECK(dead.left["no place"] == "it does not say where it came from; name the topic or queue to publish to");
  CHECK(dead.left["conflict"] == "its key is known with another content; ask for the reason conflict to publish it");
  CHECK(dead.left["without headers"] == "its own headers are missing, because they did not fit into the dead letter");
  CHECK(dead.left["too often"] == "it was published again too often");
  CHECK(dead.left["torn"] == "its message is torn: repair the data, then forget the message");
  CHECK(dead.left["discarded"] == "its message is discarded; forget the message to let it run");
  CHECK(dead.left["too large"] == "the broker refuses it: it has too many bytes");
  CHECK(dead.state_of("torn") == "torn");
  CHECK(dead.state_of("discarded") == "discarded");
  CHECK(dead.state_of("too often") == "parked");
}

TEST_CASE("the options select dead letters, and say what is missing in the others") {
  DeadLetters dead;
  dead.add("a");
  dead.add("b", {{"txinbox-error-class", "std::logic_error"}});
  dead.add("c", {{"txinbox-reason", "conflict"}});
  dead.add("d", {{"txinbox-consumer", ""}, {"txinbox-key", ""}, {"txinbox-source", ""}});
  dead.add("e", {{"txinbox-redrives", "3"}});
  SUBCASE("error class") {
    (void)dead.run({.error_class = "std::logic_error"});
    CHECK(dead.published == std::vector<std::string>{"b"});
    CHECK(dead.left["a"] == "it has another error class");
  }
  SUBCASE("reason") {
    (void)dead.run({.reason = "conflict"});
    CHECK(dead.published == std::vector<std::string>{"c"});
    CHECK(dead.left["a"] == "it has another reason");
  }
  SUBCASE("consumer") {
    (void)dead.run({.consumer = "another"});
    CHECK(dead.published.empty());
    CHECK(dead.left["a"] == "it is of another consumer");
  }
  SUBCASE("too often") {
    (void)dead.run({.max_redrives = 4});
    CHECK(dead.published == std::vector<std::string>{"a", "b", "e"});
  }
  SUBCASE("consumer, key and place of a dead letter without headers") {
    const MessageOf body = [](const Incoming& in) { return Message{.business_key = std::string(in.body)}; };
    (void)dead.run({.consumer = "svc", .to = "other", .message_of = body});
    CHECK(dead.published == std::vector<std::string>{"a", "b", "d"});
    CHECK(dead.destinations == std::vector<std::string>(3, "other"));
    CHECK(dead.state_of("d").empty());
  }
  SUBCASE("a dead letter without headers, whose key is not found") {
    (void)dead.run({.consumer = "svc", .to = "orders"});
    CHECK(dead.left[""] == "it does not say its key; say where the key is");
    const MessageOf throws = [](const Incoming&) -> Message { throw std::runtime_error("no key"); };
    (void)dead.run({.consumer = "svc", .to = "orders", .message_of = throws});
    CHECK(dead.published == std::vector<std::string>{"a", "b"});
  }
  SUBCASE("at most so many") {
    const RedriveSummary summary = dead.run({.max = 1});
    CHECK(summary.end == RedriveEnd::limit);
    CHECK(dead.published == std::vector<std::string>{"a"});
  }
}

TEST_CASE("dead letters with a key or a consumer that no database takes do not stop the others") {
  DeadLetters dead;
  dead.letters.publish(0, {.body = "long", .headers = DeadLetters::headers(std::string(300, 'k'))});
  dead.letters.publish(0, {.body = "other", .headers = DeadLetters::headers("k", {{"txinbox-consumer", "a\xff"}})});
  dead.letters.publish(0,
                       {.body = "unreadable", .headers = DeadLetters::headers("", {{"txinbox-reason", "unreadable"}})});
  dead.add("good");
  const RedriveSummary summary = dead.run();
  CHECK(dead.published == std::vector<std::string>{"unreadable", "good"});
  CHECK(summary.why == std::map<std::string, std::size_t>{{"its consumer or its key is not valid", 2}});
}

TEST_CASE("a consumer for which nothing is recorded must be named") {
  DeadLetters dead;
  dead.letters.publish(0, {.body = "a", .headers = DeadLetters::headers("a")});
  CHECK(dead.run().left == 1);
  CHECK(dead.run({.consumer = "svc"}).redriven == 1);
}

/// A source that reports while it closes, as those of Kafka and RocketMQ do.
class ReportingSource : public MemorySource {
 public:
  using MemorySource::MemorySource;
  void close() noexcept override {
    report(SourceEventType::warning, "closing");
    MemorySource::close();
  }
};

TEST_CASE("an error that ends redrive closes the source, and the source does not call it any more") {
  DeadLetters dead;
  dead.add("a");
  ReportingSource source(dead.letters);
  int events = 0;
  const Republisher refused = [](std::span<const Republication>) -> std::vector<PublishResult> {
    throw Error(ErrorCode::access_refused, "no right");
  };
  const auto call = [&] {
    (void)redrive(source, refused, dead.pool, {.observer = [&](const RedriveEvent& event) {
                    if (event.type == RedriveEventType::source) ++events;
                  }});
  };
  CHECK(thrown_by(call) == "access_refused");
  CHECK(source.is_closed());
  CHECK(events == 1);
  source.close();
  CHECK(events == 1);
  CHECK(dead.letters.acknowledged() == 0);
}

TEST_CASE("a dry run changes nothing") {
  DeadLetters dead;
  dead.add("a");
  dead.add("b", {{"txinbox-reason", "conflict"}});
  const RedriveSummary summary = dead.run({.dry_run = true});
  CHECK(summary.redriven == 1);
  CHECK(summary.left == 1);
  CHECK(dead.published.empty());
  CHECK(dead.letters.acknowledged() == 0);
  CHECK(dead.state_of("a") == "parked");
}

TEST_CASE("redrive by an operator has a record at its begin and at its end, and one for each message that was parked") {
  DeadLetters scene;
  scene.add("a");
  scene.add("b");
  const auto audit = [&] { return list_audit(scene.pool.acquire()); };
  CHECK(scene.run({.by = OperatorAction{"ann", "repaired"}, .dry_run = true}).redriven == 2);
  CHECK(audit().empty());
  CHECK(scene.run({.by = OperatorAction{"ann", "repaired"}}).redriven == 2);
  const auto all = audit();
  REQUIRE(all.size() == 4);
  CHECK(all[0].action == "redrive");
  CHECK(all[0].messages == 2);
  CHECK(all[1].action == "retry");
  CHECK(all[2].action == "retry");
  CHECK(all[3].action == "redrive_begin");
  CHECK(all[3].messages == 0);
  for (const AuditRecord& each : all) CHECK(each.actor == "ann");
}

TEST_CASE("redrive that an error has ended has a record of what it has published") {
  DeadLetters dead;
  dead.add("a");
  MemorySource source(dead.letters);
  int calls = 0;
  const Republisher publish = [&](std::span<const Republication> messages) {
    if (++calls > 1) throw Error(ErrorCode::broker_refused, "no right any more");
    dead.add("b");
    return dead.publish(messages);
  };
  CHECK(thrown_by([&] {
          (void)redrive(source, publish, dead.pool, {.by = OperatorAction{"ann", "repaired"}});
        }) == "broker_refused");
  const auto all = list_audit(dead.pool.acquire(), {.action = "redrive"});
  REQUIRE(all.size() == 1);
  CHECK(all[0].messages == 1);
}

TEST_CASE("redrive stops after the present dead letters, and gives back what the broker has taken") {
  DeadLetters dead;
  std::stop_source stop;
  for (const char* key : {"a", "b", "c"}) dead.add(key);
  SUBCASE("stop") {
    const RedriveSummary summary =
        dead.run({.rate = 5, .stop = stop.get_token(), .observer = [&](const RedriveEvent&) { stop.request_stop(); }});
    CHECK(summary.end == RedriveEnd::stopped);
    CHECK(summary.redriven == 1);
    CHECK(dead.letters.acknowledged() == 1);
  }
  SUBCASE("too many are left") {
    dead.add("d");
    const RedriveSummary summary = dead.run({.reason = "rejected", .max_left = 2});
    CHECK(summary.end == RedriveEnd::too_many_left);
    CHECK(summary.left == 2);
    const RedriveSummary dry = dead.run({.max_left = 3, .dry_run = true});
    CHECK(dry.end == RedriveEnd::too_many_left);
    CHECK(dry.redriven == 3);
  }
}

TEST_CASE("options of redrive that are not valid are refused") {
  DeadLetters dead;
  MemorySource source(dead.letters);
  const Republisher publish = [](std::span<const Republication>) { return std::vector<PublishResult>(); };
  CHECK(thrown_by([&] { (void)redrive(source, {}, dead.pool); }) == "invalid_argument");
  CHECK(thrown_by([&] { (void)redrive(source, publish, dead.pool, {.rate = -1}); }) == "invalid_argument");
  CHECK(thrown_by([&] { (void)redrive(source, publish, dead.pool, {.max_redrives = 0}); }) == "invalid_argument");
  CHECK(thrown_by([&] { (void)redrive(source, publish, dead.pool, {.max_left = 0}); }) == "invalid_argument");
  CHECK(thrown_by([&] { (void)redrive(source, publish, dead.pool, {.idle_exit = 0ms}); }) == "invalid_argument");
  dead.add("a");
  CHECK(thrown_by([&] { (void)redrive(source, publish, dead.pool, {.idle_exit = 20ms}); }) == "invalid_argument");
}

}  // namespace
}  // namespace txinbox::test
