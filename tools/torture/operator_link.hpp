#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <txinbox/redrive.hpp>
#include <txinbox/source.hpp>

#include "console/line_reader.hpp"
#include "console/output.hpp"
#include "torture/redrive_messages.hpp"

namespace txinbox::torture {

/// An operator's connection to the broker: standard input and output.
class OperatorLink {
 public:
  OperatorLink();

  /// Asks, and waits for the answer. If the input has ended, the answer is empty, and `stop` is set.
  ///
  /// Threads: any number.
  QuestionAnswer ask(const Question& question);

  void say_fatal(std::string why);

  std::stop_token stop() const { return stop_.get_token(); }

 private:
  std::mutex mutex_;
  cli::LineReader lines_;
  cli::Output output_;
  std::stop_source stop_;
};

/// The dead letters of the broker, as a source for `redrive`.
class DeadLetterSource : public Source {
 public:
  explicit DeadLetterSource(OperatorLink& link) : link_(link) {}
  ~DeadLetterSource() override { close(); }
  DeadLetterSource(const DeadLetterSource&) = delete;
  DeadLetterSource& operator=(const DeadLetterSource&) = delete;

  std::vector<Incoming> poll(std::size_t max, std::chrono::milliseconds wait) override;
  void acknowledge(std::span<const Incoming* const> messages) override;
  bool has_dead_letters() const override { return false; }
  void dead_letter(std::span<DeadLetter>) override {}
  void wake() noexcept override {}
  SourceStatus status() override { return {.name = "dead letters", .connected = true}; }
  void close() noexcept override;

 private:
  OperatorLink& link_;
  bool is_closed_ = false;
};

/// Publishes dead letters again at the broker. `acknowledges_early` is broken on purpose: it does not look at the
/// broker's answers, so each dead letter is acknowledged, also if the broker has not confirmed the message.
std::vector<PublishResult> publish_again(OperatorLink& link, std::span<const Republication> messages,
                                         bool acknowledges_early);

/// Publishes messages of the outbox at the broker.
std::vector<PublishResult> publish_stored(OperatorLink& link, std::span<const OutgoingMessage> messages);

}  // namespace txinbox::torture
