#pragma once

#include <chrono>
#include <cstddef>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/source.hpp>

#include "support/source_subject.hpp"

/// The cases of the rule of `Source`. source_subject.hpp says how a file of tests invokes them.
namespace txinbox::test {

TEST_CASE_TEMPLATE_DEFINE("the rule of sources: only what was not acknowledged is delivered again", Subject,
                          source_delivers_again) {
  static_assert(SourceSubject<Subject>);
  Subject subject;
  for (const char* body : {"m0", "m1", "m2", "m3", "m4", "m5"}) subject.publish({.body = body});
  std::string rest;
  {
    const auto source = subject.open();
    const std::vector<Incoming> taken = take(*source, 6);
    CHECK(bodies_of(taken) == "m0 m1 m2 m3 m4 m5 ");
    for (const Incoming& each : taken) CHECK(source->holds(each));
    const std::span all(taken);
    acknowledge(*source, all.first(2));
    acknowledge(*source, all.first(2));  // the second time, there is nothing to do
    rest = bodies_of(all.subspan(2));
    CHECK(source->poll(1, std::chrono::milliseconds(300)).empty());
    CHECK(source->status().connected);
    CHECK(source->status().reconnects == 0);
    source->close();
    source->close();
    CHECK_FALSE(source->status().connected);
  }
  check_what_comes(subject, rest, 4);
  check_what_comes(subject, "", 0);
}

TEST_CASE_TEMPLATE_DEFINE("the rule of sources: a dead letter that is refused stops nothing else, and is taken later",
                          Subject, source_outlives_refused_letters) {
  static_assert(RefusingSubject<Subject>);
  for (const LetterRefusal why : Subject::refusals()) {
    CAPTURE(static_cast<int>(why));
    Subject subject;
    const std::string large(5000, 'b');
    subject.publish({.body = large, .lane = 1});
    subject.publish({.body = "m0"});
    const auto source = subject.open();
    const std::vector<Incoming> taken = take(*source, 2);
    const bool is_first = taken[0].body == large;
    const std::span all(taken);
    const Incoming& bad = all[is_first ? 0 : 1];
    subject.publish({.body = "m1"});
    subject.refuse_letters(why);
    for (int tries = 0; tries < 3; ++tries) {
      // An error is for what somebody must fix.
      const std::string result = send_letter(*source, {.incoming = &bad, .reason = "rejected"});
      const bool is_right = result == (why == LetterRefusal::forbidden ? "access_refused" : "not confirmed") ||
                            (why == LetterRefusal::missing && result == "broker_refused");
      CHECK_MESSAGE(is_right, result);
      CHECK(source->status().connected);
      CHECK(source->holds(bad));
    }
    acknowledge(*source, all.subspan(is_first ? 1 : 0, 1));
    acknowledge(*source, take(*source, 1));
    subject.take_letters_again();
    const auto is_confirmed = [&] {
      return send_letter(*source, {.incoming = &bad, .reason = "rejected"}) == "confirmed";
    };
    if (why == LetterRefusal::forbidden) {  // librdkafka answers from its memory for a moment
      CHECK(becomes_true([&] { return source->poll(0, std::chrono::milliseconds(100)).empty() && is_confirmed(); }));
    } else {
      CHECK(is_confirmed());
    }
    CHECK(source->status().reconnects == 0);
    source->close();
    // `run` would acknowledge it now. The source does not.
    check_what_comes(subject, large + " ", 1);
    const std::vector<SourceMessage> letters = subject.take_letters(1);
    REQUIRE(letters.size() == 1);
    CHECK(letters[0].body == large);
  }
}

TEST_CASE_TEMPLATE_DEFINE("the rule of sources: wake ends a poll that waits, and the next one if none waits", Subject,
                          source_wakes) {
  static_assert(SourceSubject<Subject>);
  using namespace std::chrono_literals;
  Subject subject;
  subject.publish({.body = "m"});
  const auto source = subject.open();
  acknowledge(*source, take(*source, 1));
  for (const std::size_t max : {0UL, 1UL, 0UL, 1UL}) {
    const auto start = RuleClock::now();
    source->wake();
    CHECK(source->poll(max, 1min).empty());
    const auto waker = std::async(std::launch::async, [&source] {
      std::this_thread::sleep_for(200ms);
      source->wake();
    });
    CHECK(source->poll(max, 1min).empty());
    waker.wait();
    CHECK(RuleClock::now() - start < 5s);
  }
}

TEST_CASE_TEMPLATE_DEFINE("the rule of sources: a dead letter is the message with one set of headers, the newest",
                          Subject, source_writes_letters) {
  static_assert(LettersSubject<Subject>);
  Subject subject;
  SourceMessage message{.body = "body", .key = "key", .headers = {{"text", "value"}, {"txinbox-other", "kept"}}};
  subject.publish(message);
  struct Try {
    DeadLetter letter;
    std::string headers;
  };
  const std::vector<Try> tries{{{.incoming = nullptr,
                                 .reason = "conflict",
                                 .error_class = "E",
                                 .consumer = "svc",
                                 .business_key = "bk",
                                 .failures = 1},
                                "txinbox-consumer=svc\ntxinbox-error-class=E\ntxinbox-failures=1\ntxinbox-key=bk\n"},
                               {{.incoming = nullptr, .reason = "parked", .consumer = "other", .failures = 7},
                                "txinbox-consumer=other\ntxinbox-error-class=\ntxinbox-failures=7\ntxinbox-key=\n"}};
  for (Try each : tries) {
    const auto source = subject.open();
    const std::vector<Incoming> taken = take(*source, 1);
    CHECK(taken[0].body == "body");
    each.letter.incoming = taken.data();
    CHECK(send_letter(*source, each.letter) == "confirmed");
    acknowledge(*source, taken);
    const std::vector<SourceMessage> letters = subject.take_letters(1);
    REQUIRE(letters.size() == 1);
    CHECK(letters[0].body == "body");
    CHECK((letters[0].key == (taken[0].key ? std::optional<std::string>(*taken[0].key) : std::nullopt)));
    const std::string name = source->status().name;  // "kafka orders"
    const std::string place = name.substr(name.find(' ') + 1);
    CHECK(headers_of(letters[0]) == "text=value\n" + each.headers + "txinbox-origin=" + std::string(taken[0].id) +
                                        "\ntxinbox-other=kept\ntxinbox-reason=" + std::string(each.letter.reason) +
                                        "\ntxinbox-source=" + place + "\n");
    subject.publish(letters[0]);  // somebody sends the letter back, as it is
  }
}

TEST_CASE_TEMPLATE_DEFINE("the rule of sources: an id of any bytes is delivered, and is in the dead letter", Subject,
                          source_takes_any_id) {
  static_assert(LettersSubject<Subject>);
  using namespace std::string_literals;
  Subject subject;
  for (const std::string& id : {"\xff\xfe\x80"s, "line\nline\x01\x1b[2J"s, "a\0b"s, std::string(255, '\xc3')}) {
    subject.publish({.body = "body", .id = id});
    const auto source = subject.open();
    const std::vector<Incoming> taken = take(*source, 1);
    CHECK(taken[0].id == id);
    CHECK(send_letter(*source, {.incoming = taken.data(), .reason = "invalid_key"}) == "confirmed");
    acknowledge(*source, taken);
    CHECK(source->status().connected);
    source->close();
    const std::vector<SourceMessage> letters = subject.take_letters(1);
    REQUIRE(letters.size() == 1);
    CHECK(letters[0].id == id);
  }
  check_what_comes(subject, "", 0);
}

TEST_CASE_TEMPLATE_DEFINE("the rule of sources: a message that was lost is not held, and comes again", Subject,
                          source_forgets_the_lost) {
  static_assert(LosingSubject<Subject>);
  Subject subject;
  for (const char* body : {"m0", "m1", "m2", "m3"}) subject.publish({.body = body});
  const auto source = subject.open();
  bool is_lost = false;
  source->on_event([&](const SourceEvent& event) {
    is_lost |= event.type == SourceEventType::disconnected || event.type == SourceEventType::lanes_revoked;
  });
  std::vector<Incoming> old = take(*source, 3);  // the source may have received the fourth one already
  subject.lose_messages(*source);
  std::vector<Incoming> came;
  CHECK(becomes_true([&] {
    for (Incoming& each : source->poll(10, std::chrono::milliseconds(100))) {
      (is_lost ? came : old).push_back(std::move(each));
    }
    return came.size() >= 4;
  }));
  CHECK(bodies_of(came) == "m0 m1 m2 m3 ");
  for (const Incoming& each : old) CHECK_FALSE(source->holds(each));
  for (const Incoming& each : came) CHECK(source->holds(each));
  acknowledge(*source, old);
  CHECK(send_letter(*source, {.incoming = old.data(), .reason = "rejected"}) == "not confirmed");
  CHECK(source->poll(1, std::chrono::milliseconds(300)).empty());
  CHECK(source->status().connected);
  for (const Incoming& each : came) CHECK(source->holds(each));
  acknowledge(*source, std::span(came).first(1));
  const std::string rest = bodies_of(std::span(came).subspan(1));
  source->close();
  check_what_comes(subject, rest, 3);
}

TEST_CASE_TEMPLATE_DEFINE("the rule of sources: no call takes longer than 5 s if the broker falls silent", Subject,
                          source_outlives_silence) {
  static_assert(SilentSubject<Subject>);
  using namespace std::chrono_literals;
  for (const Silence when : Subject::silences()) {
    CAPTURE(static_cast<int>(when));
    Subject subject;
    for (const char* body : {"m0", "m1"}) subject.publish({.body = body});
    const auto source = subject.open();
    std::vector<Incoming> taken;
    if (when != Silence::at_start) taken = take(*source, 2);
    fall_silent(subject, when);
    const auto check = [](const std::string& name, const auto& call) {
      const auto start = RuleClock::now();
      call();
      const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(RuleClock::now() - start);
      CHECK_MESSAGE(took < Subject::longest_call, name << " took " << took.count() << " ms");
    };
    for (int i = 0; i < 2; ++i) check("poll", [&] { CHECK(source->poll(10, 1s).empty()); });
    if (!taken.empty()) {
      const std::span all(taken);
      check("dead_letter",
            [&] { CHECK(send_letter(*source, {.incoming = taken.data(), .reason = "rejected"}) == "not confirmed"); });
      check("acknowledge", [&] { acknowledge(*source, all); });
    }
    check("poll without room", [&] { CHECK(source->poll(0, 1s).empty()); });
    check("status", [&] { (void)source->status(); });
    check("wake", [&] { source->wake(); });
    check("close", [&] { source->close(); });
  }
}

}  // namespace txinbox::test
