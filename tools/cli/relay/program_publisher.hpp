#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
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
///
/// If the program ends, takes too long, or answers something else, the program is ended. What it has answered before
/// counts. It is then given the other messages again.
class ProgramPublisher {
 public:
  /// `report` gets the reason if the program has answered only some messages of a call.
  ProgramPublisher(std::string command, std::chrono::milliseconds timeout,
                   std::function<void(const std::string&)> report)
      : command_(std::move(command)), timeout_(timeout), report_(std::move(report)) {}

  /// Errors: std::runtime_error if the program has answered no message of the call.
  std::vector<PublishResult> operator()(std::span<const OutgoingMessage> messages);

 private:
  static constexpr std::size_t any_number = std::numeric_limits<std::size_t>::max();

  std::size_t publish(std::span<const OutgoingMessage> messages, std::vector<PublishResult>& results,
                      std::string& error);

  const std::string command_;
  const std::chrono::milliseconds timeout_;
  const std::function<void(const std::string&)> report_;
  std::unique_ptr<Program> program_;
  std::size_t most_ = any_number;  ///< How many messages the program can answer in time.
};

}  // namespace txinbox::cli
