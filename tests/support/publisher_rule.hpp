#pragma once

#include <algorithm>
#include <concepts>
#include <csignal>
#include <cstddef>
#include <exception>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/outbox_relay.hpp>

namespace txinbox::test {

/// The rule of `Publisher`, as test cases for each publisher. A file of tests has a subject, and invokes the cases with
/// it: TEST_CASE_TEMPLATE_INVOKE(publisher_confirms, Subject). If a receiver cannot do what a case needs, the file has
/// an empty case that is skipped and says why.
///
/// A subject is a publisher and its receiver. The receiver can be told to misbehave in the next call.
template <class T>
concept PublisherSubject = std::default_initializable<T> &&
    requires(T subject, const std::string& id, std::size_t answers) {
  { subject.publisher() } -> std::convertible_to<Publisher>;
  /// Another publisher, whose receiver cannot be reached.
  { T::publisher_to_nowhere() } -> std::convertible_to<Publisher>;
  /// A message that the receiver takes.
  { T::message(id) } -> std::same_as<OutgoingMessage>;
  /// A message that the receiver refuses, or that cannot be carried.
  { T::refused(id) } -> std::same_as<OutgoingMessage>;
  /// The ids of the messages that the receiver holds.
  { subject.held() } -> std::same_as<std::set<std::string>>;
  /// After this many answers, the receiver keeps the connections open, and answers nothing.
  subject.fall_silent_after(answers);
  /// After this many answers, the receiver closes the connections.
  subject.close_after(answers);
  /// The receiver works again.
  subject.recover();
};

/// Gives SIGPIPE its default action as long as it lives: the process ends if a publisher raises it.
class SigpipeEndsProcess {
 public:
  SigpipeEndsProcess() : before_(std::signal(SIGPIPE, SIG_DFL)) {}
  ~SigpipeEndsProcess() {
    const bool is_unchanged = std::signal(SIGPIPE, before_) == SIG_DFL;
    CHECK(is_unchanged);
  }
  SigpipeEndsProcess(const SigpipeEndsProcess&) = delete;
  SigpipeEndsProcess& operator=(const SigpipeEndsProcess&) = delete;

 private:
  void (*before_)(int);
};

template <PublisherSubject Subject>
std::vector<OutgoingMessage> messages_for_rule(std::size_t count) {
  std::vector<OutgoingMessage> messages;
  for (std::size_t i = 0; i < count; ++i) messages.push_back(Subject::message("id-of-" + std::to_string(i)));
  return messages;
}

inline std::set<std::string> ids_of(std::span<const OutgoingMessage> messages) {
  std::set<std::string> ids;
  for (const OutgoingMessage& message : messages) ids.insert(message.id);
  return ids;
}

/// doctest prints no sets.
inline std::string text_of(const std::set<std::string>& ids) {
  std::string text;
  for (const std::string& id : ids) text += id + ' ';
  return text;
}

inline bool is_blamed(const PublishResult& result) {
  return result.status == PublishStatus::failed || result.status == PublishStatus::rejected;
}

/// A call of a publisher. None if the call throws.
inline std::optional<std::vector<PublishResult>> call(const Publisher& publish,
                                                      std::span<const OutgoingMessage> messages) {
  try {
    return publish(messages);
  } catch (const std::exception& error) {
    INFO(error.what());
    CHECK(*error.what() != '\0');
    return std::nullopt;
  }
}

inline std::set<std::string> confirmed_of(std::span<const OutgoingMessage> messages,
                                          const std::vector<PublishResult>& results) {
  REQUIRE(results.size() == messages.size());
  std::set<std::string> ids;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].status == PublishStatus::confirmed) ids.insert(messages[i].id);
  }
  return ids;
}

TEST_CASE_TEMPLATE_DEFINE("the rule of publishers: all messages are confirmed, and the receiver holds them", Subject,
                          publisher_confirms) {
  const SigpipeEndsProcess no_signal;
  Subject subject;
  const Publisher publish = subject.publisher();
  CHECK(publish({}).empty());
  const auto messages = messages_for_rule<Subject>(20);
  const auto results = publish(messages);
  for (const PublishResult& result : results) CHECK_MESSAGE(result.error.empty(), result.error);
  CHECK(text_of(confirmed_of(messages, results)) == text_of(ids_of(messages)));
  CHECK(text_of(subject.held()) == text_of(ids_of(messages)));
}

TEST_CASE_TEMPLATE_DEFINE("the rule of publishers: only the message that is refused is not confirmed", Subject,
                          publisher_blames_the_refused) {
  const SigpipeEndsProcess no_signal;
  for (const std::size_t refused : {0U, 4U, 9U}) {
    CAPTURE(refused);
    Subject subject;
    const Publisher publish = subject.publisher();
    auto messages = messages_for_rule<Subject>(10);
    auto expected = ids_of(messages);
    expected.erase(messages[refused].id);
    messages[refused] = Subject::refused(messages[refused].id);
    const auto results = publish(messages);
    CHECK(text_of(confirmed_of(messages, results)) == text_of(expected));
    CHECK(text_of(subject.held()) == text_of(expected));
    CHECK(is_blamed(results[refused]));
    CHECK_FALSE(results[refused].error.empty());
  }
}

inline void erase(std::vector<OutgoingMessage>& messages, const std::set<std::string>& ids) {
  std::erase_if(messages, [&](const OutgoingMessage& message) { return ids.contains(message.id); });
}

/// Calls the publisher, whose receiver goes away in the call, and again when the receiver works. Checks that what the
/// receiver has confirmed is confirmed, and that no message is blamed.
template <PublisherSubject Subject>
void check_interrupted_call(Subject& subject, const Publisher& publish, std::vector<OutgoingMessage> messages,
                            std::size_t answers) {
  const std::set<std::string> all = ids_of(messages);
  std::set<std::string> confirmed;
  if (const auto results = call(publish, messages)) {
    confirmed = confirmed_of(messages, *results);
    CHECK(confirmed.size() >= answers);
    for (const PublishResult& result : *results) CHECK_MESSAGE(!is_blamed(result), result.error);
    erase(messages, confirmed);
  } else {
    CHECK(answers == 0);  // the exception would make the relay publish the confirmed messages again
  }
  subject.recover();
  CHECK(std::ranges::includes(subject.held(), confirmed));
  // A program gets few messages at first, and librdkafka connects again after a while.
  for (int calls = 0; !messages.empty() && calls < 20; ++calls) {
    const auto results = call(publish, messages);
    if (!results) continue;
    for (const PublishResult& result : *results) CHECK_MESSAGE(!is_blamed(result), result.error);
    erase(messages, confirmed_of(messages, *results));
  }
  CHECK(messages.empty());
  CHECK(text_of(subject.held()) == text_of(all));
}

TEST_CASE_TEMPLATE_DEFINE("the rule of publishers: a receiver that closes the connection blames no message", Subject,
                          publisher_outlives_close) {
  const SigpipeEndsProcess no_signal;
  for (const std::size_t answers : {0U, 1U, 5U}) {
    CAPTURE(answers);
    Subject subject;
    const Publisher publish = subject.publisher();
    subject.close_after(answers);
    check_interrupted_call(subject, publish, messages_for_rule<Subject>(10), answers);
  }
}

TEST_CASE_TEMPLATE_DEFINE("the rule of publishers: a receiver that falls silent ends the call and blames no message",
                          Subject, publisher_outlives_silence) {
  const SigpipeEndsProcess no_signal;
  for (const std::size_t answers : {0U, 3U}) {
    CAPTURE(answers);
    Subject subject;
    const Publisher publish = subject.publisher();
    subject.fall_silent_after(answers);
    check_interrupted_call(subject, publish, messages_for_rule<Subject>(10), answers);
  }
}

TEST_CASE_TEMPLATE_DEFINE("the rule of publishers: a receiver that cannot be reached blames no message", Subject,
                          publisher_blames_nobody_alone) {
  const SigpipeEndsProcess no_signal;
  const Publisher publish = Subject::publisher_to_nowhere();
  for (const std::size_t count : {3U, 1U}) {
    const auto messages = messages_for_rule<Subject>(count);
    const auto results = call(publish, messages);
    if (!results) continue;
    REQUIRE(results->size() == count);
    for (const PublishResult& result : *results) CHECK(result.status == PublishStatus::postponed);
  }
}

}  // namespace txinbox::test
