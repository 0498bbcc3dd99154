#include "torture/operator_link.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include <unistd.h>

namespace txinbox::torture {
namespace {

constexpr std::size_t longest_line = 1'000'000;
constexpr std::chrono::milliseconds pause_without_letters{10};

// So few that an answer fits into a pipe.
constexpr std::size_t most_letters = 50;

/// A dead letter, and the headers that refer to it.
struct HeldLetter {
  explicit HeldLetter(RedriveMessage the_message) : message(std::move(the_message)) {
    for (const auto& [name, value] : message.headers) headers.push_back({.name = name, .value = value});
  }

  RedriveMessage message;
  std::vector<IncomingHeader> headers = {};
};

std::vector<PublishResult> ask_to_publish(OperatorLink& link, const Question& question) {
  const auto accepted = link.ask(question).accepted;
  if (accepted.size() != question.messages.size()) throw std::runtime_error("the broker does not answer");
  std::vector<PublishResult> results;
  results.reserve(accepted.size());
  for (const bool each : accepted) {
    results.push_back(each ? PublishResult{} : PublishResult{.status = PublishStatus::failed, .error = "refused"});
  }
  return results;
}

}  // namespace

OperatorLink::OperatorLink() : lines_(STDIN_FILENO, -1, longest_line) {}

QuestionAnswer OperatorLink::ask(const Question& question) {
  const std::lock_guard lock(mutex_);
  std::string text = to_line(question);
  text.pop_back();
  output_.line(text);
  std::string_view line;
  if (lines_.next(line) == cli::LineReader::Status::line) {
    if (auto answer = read_question_answer(line)) return *std::move(answer);
  }
  stop_.request_stop();
  return {};
}

void OperatorLink::say_fatal(std::string why) {
  const std::lock_guard lock(mutex_);
  std::string text = to_line(Question{.fatal = std::move(why)});
  text.pop_back();
  output_.line(text);
}

std::vector<Incoming> DeadLetterSource::poll(std::size_t max, std::chrono::milliseconds wait) {
  std::vector<Incoming> all;
  if (max != 0) {
    for (RedriveMessage& each : link_.ask({.ask = Ask::poll, .most = std::min(max, most_letters)}).letters) {
      const auto held = std::make_shared<const HeldLetter>(std::move(each));
      all.push_back({.body = held->message.body, .headers = held->headers, .ticket = held->message.id, .owner = held});
    }
  }
  if (all.empty()) std::this_thread::sleep_for(std::min(wait, pause_without_letters));
  return all;
}

void DeadLetterSource::acknowledge(std::span<const Incoming* const> messages) {
  Question question{.ask = Ask::acknowledge};
  for (const Incoming* each : messages) question.messages.push_back({.id = each->ticket, .body = {}});
  (void)link_.ask(question);
}

void DeadLetterSource::close() noexcept {
  if (!std::exchange(is_closed_, true)) (void)link_.ask({.ask = Ask::give_back});
}

std::vector<PublishResult> publish_again(OperatorLink& link, std::span<const Republication> messages,
                                         bool acknowledges_early) {
  Question question{.ask = Ask::publish};
  for (const Republication& each : messages) {
    RedriveMessage message{
        .id = each.incoming->ticket, .body = std::string(each.incoming->body), .destination = each.destination};
    for (const auto& [name, value] : each.headers) message.headers.emplace_back(name, value);
    question.messages.push_back(std::move(message));
  }
  auto results = ask_to_publish(link, question);
  return acknowledges_early ? std::vector<PublishResult>(messages.size()) : results;
}

std::vector<PublishResult> publish_stored(OperatorLink& link, std::span<const OutgoingMessage> messages) {
  Question question{.ask = Ask::publish};
  for (const OutgoingMessage& each : messages) {
    question.messages.push_back({.body = each.payload, .destination = each.topic});
  }
  return ask_to_publish(link, question);
}

}  // namespace txinbox::torture
