#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <txinbox/outbox_relay.hpp>

#include "cli/relay/program.hpp"

namespace txinbox::cli {

/// A message as the program reads it: a JSON object on one line, with its line feed.
std::string line_of(const OutgoingMessage& message);

/// Publishes through a program. Each message is a line of JSON on the program's standard input. The program answers
/// each message with a line of JSON. It starts the program at the first message, and again if the program has ended.
class ProgramPublisher {
 public:
  ProgramPublisher(std::string command, std::chrono::milliseconds timeout)
      : command_(std::move(command)), timeout_(timeout) {}

  /// Errors: std::runtime_error if the program ends, takes too long, or answers with something else. Then the program
  ///          is ended.
  std::vector<PublishResult> operator()(std::span<const OutgoingMessage> messages);

 private:
  const std::string command_;
  const std::chrono::milliseconds timeout_;
  std::unique_ptr<Program> program_;
};

}  // namespace txinbox::cli
