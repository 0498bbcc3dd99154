#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
  std::string id = {};  ///< The id that the producer chooses, if the broker lets it. Empty: the broker chooses it.
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

/// For cases in which a source loses its messages.
template <class T>
concept LosingSubject = SourceSubject<T> && requires(T subject, Source& source) {
  /// The broker takes the messages of this source back: its connection ends, or its lanes go. The source reports it in
  /// one of its next polls, and then gets the messages again.
  subject.lose_messages(source);
};

/// When a broker falls silent.
enum class Silence { at_start, with_messages, within_message };

/// For cases in which the broker does not answer.
template <class T>
concept SilentSubject = SourceSubject<T> && requires(T subject) {
  /// How long a call may take: 5 s, or more for a client that cannot do better.
  { T::longest_call } -> std::convertible_to<std::chrono::milliseconds>;
  /// How long `run` may go on after a stop: the rest of a call, and the end of the connection.
  { T::longest_stop } -> std::convertible_to<std::chrono::milliseconds>;
  /// When this broker can fall silent.
  { T::silences() } -> std::same_as<std::vector<Silence>>;
  /// Now the broker stops, and the connections stay open.
  subject.fall_silent();
  /// The broker stops in the middle of the message that is published next, or of the answer that has it.
  subject.fall_silent_in_message();
};

/// Lets the broker fall silent. Within a message: a large one is published then.
template <SilentSubject Subject>
void fall_silent(Subject& subject, Silence when) {
  if (when != Silence::within_message) return subject.fall_silent();
  subject.fall_silent_in_message();
  subject.publish({.body = std::string(100'000, 'x')});
}

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

/// The headers, sorted, as one text.
inline std::string headers_of(const SourceMessage& message) {
  auto headers = message.headers;
  std::ranges::sort(headers);
  std::string text;
  for (const auto& [name, value] : headers) text.append(name).append("=").append(value).append("\n");
  return text;
}

}  // namespace txinbox::test
