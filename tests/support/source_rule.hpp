#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/error.hpp>
#include <txinbox/source.hpp>

namespace txinbox::test {

/// A message as a producer sends it, and as a reader of the dead letters gets it.
struct SourceMessage {
  std::string body = {};
  std::optional<std::string> key = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string id = {};  ///< What the producer chooses, if the broker lets it. Empty: the broker chooses it.
  int lane = 0;         ///< 0 or 1. A broker without lanes ignores it.
};

/// Why a broker takes no dead letter.
enum class LetterRefusal {
  forbidden,  ///< The user may not write to the place for dead letters.
  missing,    ///< The place does not exist.
  too_large,  ///< The place takes no letters of this size.
  failing,    ///< The broker answers with another error.
};

/// The rule of `Source`, as test cases for each broker. A file of tests has a subject, and invokes the cases with it:
/// TEST_CASE_TEMPLATE_INVOKE(source_delivers_again, Subject). If a broker cannot do what a case needs, the file has an
/// empty case that is skipped and says why.
///
/// A subject is a place for messages at a broker, such as a queue, and a place for their dead letters. Both are empty
/// at first. Each case says which of the further functions of a subject it needs.
template <class T>
concept SourceSubject = std::default_initializable<T> && requires(T subject, const SourceMessage& message) {
  /// A new source of the place, with dead letters.
  { subject.open() } -> std::same_as<std::unique_ptr<Source>>;
  /// The broker has the message when it returns. The messages of a lane keep their order.
  subject.publish(message);
};

/// For cases with dead letters.
template <class T>
concept LettersSubject = SourceSubject<T> && requires(T subject, std::size_t count) {
  /// Takes this many dead letters from their place. Returns fewer if fewer are there after a while.
  { subject.take_letters(count) } -> std::same_as<std::vector<SourceMessage>>;
};

/// For cases in which the broker refuses dead letters.
template <class T>
concept RefusingSubject = LettersSubject<T> && requires(T subject, LetterRefusal why) {
  /// The reasons for which this broker can refuse.
  { T::refusals() } -> std::same_as<std::vector<LetterRefusal>>;
  /// From now on, the broker refuses the letters of messages of 5000 bytes, or all letters. Other calls of the subject
  /// may not work.
  subject.refuse_letters(why);
  /// The broker takes all letters again.
  subject.take_letters_again();
};

using RuleClock = std::chrono::steady_clock;

/// Whether the condition becomes true in half a minute.
template <class Condition>
bool becomes_true(Condition condition) {
  const auto give_up = RuleClock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (RuleClock::now() > give_up) return false;
  }
  return true;
}

/// Polls until this many messages have come.
inline std::vector<Incoming> take(Source& source, std::size_t count) {
  std::vector<Incoming> taken;
  (void)becomes_true([&] {
    for (Incoming& each : source.poll(count - taken.size(), std::chrono::milliseconds(100))) {
      taken.push_back(std::move(each));
    }
    return taken.size() >= count;
  });
  REQUIRE(taken.size() == count);
  return taken;
}

inline void acknowledge(Source& source, std::span<const Incoming> messages) {
  std::vector<const Incoming*> done;
  for (const Incoming& each : messages) done.push_back(&each);
  source.acknowledge(done);
}

/// Takes messages, and acknowledges them. `id_header`: the header that has the id which the producer has chosen. It is
/// not among the headers of the result.
inline std::vector<SourceMessage> take_messages(Source& source, std::size_t count, std::string_view id_header = {}) {
  const std::vector<Incoming> taken = take(source, count);
  std::vector<SourceMessage> messages;
  for (const Incoming& each : taken) {
    SourceMessage& message = messages.emplace_back();
    message.body = each.body;
    if (each.key) message.key = *each.key;
    for (const IncomingHeader& header : each.headers) {
      if (header.name == id_header) {
        message.id = header.value;
      } else {
        message.headers.emplace_back(header.name, header.value);
      }
    }
  }
  acknowledge(source, taken);
  source.close();
  return messages;
}

/// The sorted bodies, as one text: doctest prints no vectors.
inline std::string bodies_of(std::span<const Incoming> messages) {
  std::vector<std::string> bodies;
  for (const Incoming& each : messages) bodies.emplace_back(each.body);
  std::ranges::sort(bodies);
  std::string text;
  for (const std::string& body : bodies) text += body + ' ';
  return text;
}

/// Checks that a new source gets these messages and no others. `bodies`: as `bodies_of` returns them, without the
/// messages that this function publishes. It acknowledges all.
template <SourceSubject Subject>
void check_what_comes(Subject& subject, const std::string& bodies, std::size_t count) {
  for (const int lane : {0, 1}) subject.publish({.body = "z-last", .lane = lane});
  const auto source = subject.open();
  const std::vector<Incoming> came = take(*source, count + 2);
  CHECK(bodies_of(came) == bodies + "z-last z-last ");
  CHECK(source->poll(1, std::chrono::milliseconds(300)).empty());
  acknowledge(*source, came);
  source->close();
}

/// Sends one dead letter. Returns "confirmed", "not confirmed", or the name of the code of the error.
inline std::string send_letter(Source& source, DeadLetter letter) {
  try {
    source.dead_letter({&letter, 1});
  } catch (const Error& error) {
    CHECK_FALSE(letter.confirmed);
    return std::string(to_string(error.code()));
  }
  return letter.confirmed ? "confirmed" : "not confirmed";
}

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
      const bool is_right = result == (why == LetterRefusal::forbidden ? "access_refused" : "not confirmed");
      CHECK_MESSAGE(is_right, result);
      CHECK(source->status().connected);
      CHECK(source->holds(bad));
    }
    acknowledge(*source, all.subspan(is_first ? 1 : 0, 1));
    acknowledge(*source, take(*source, 1));
    subject.take_letters_again();
    CHECK(send_letter(*source, {.incoming = &bad, .reason = "rejected"}) == "confirmed");
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

}  // namespace txinbox::test
