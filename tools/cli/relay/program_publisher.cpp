#include "cli/relay/program_publisher.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "console/json_output.hpp"
#include "console/utf8.hpp"
#include "message/json/json_value.hpp"
#include "shared/base64.hpp"

namespace txinbox::cli {
namespace {

std::string text_in(const detail::JsonValue& json, std::string_view name) {
  const detail::JsonValue* value = json.find(name);
  return value != nullptr && value->kind == detail::JsonValue::Kind::string ? value->text : std::string();
}

/// Returns the value of a boolean that may be missing.
bool is_true(const detail::JsonValue& json, std::string_view name) {
  const detail::JsonValue* value = json.find(name);
  if (value == nullptr) return false;
  if (value->kind == detail::JsonValue::Kind::boolean) return value->boolean;
  throw std::runtime_error(fmt::format("the program's \"{}\" is not a boolean", name));
}

/// Only an answer that says so is a confirmation, because the relay deletes the message. A program that repeats its
/// input confirms nothing.
PublishResult result_in(const detail::JsonValue& answer) {
  const detail::JsonValue* error = answer.find("error");
  if (error != nullptr && error->kind != detail::JsonValue::Kind::string) {
    throw std::runtime_error("the program's \"error\" is not a string");
  }
  const bool rejected = is_true(answer, "rejected");
  const bool published = is_true(answer, "published");
  if (published == (rejected || error != nullptr)) {
    throw std::runtime_error("the program's answer must have either \"published\":true or an \"error\"");
  }
  if (published) return {};
  return {.status = rejected ? PublishStatus::rejected : PublishStatus::failed, .error = text_in(answer, "error")};
}

}  // namespace

std::string line_of(const OutgoingMessage& message) {
  Json json{{"id", message.id}, {"topic", message.topic}, {"key", message.key}, {"type", message.type}};
  Json headers;
  for (const auto& [name, value] : message.headers) headers.set(name, value);
  json.set("headers", std::move(headers));
  if (find_invalid_utf8(message.payload) == std::string::npos) {
    json.set("payload", message.payload);
  } else {
    json.set("payload_base64", component::base64(message.payload));
  }
  return json.text() + '\n';
}

std::vector<PublishResult> ProgramPublisher::operator()(std::span<const OutgoingMessage> messages) {
  const auto give_up = std::chrono::steady_clock::now() + timeout_;
  std::vector<PublishResult> results(messages.size(), {.status = PublishStatus::postponed});
  const auto given = messages.first(std::min(messages.size(), most_));
  std::string error;
  const std::size_t answered = publish(given, results, error);
  if (error.empty()) {
    most_ = most_ > any_number / 2 ? any_number : 2 * most_;
    return results;
  }
  // The lease allows for the time-out only, so the end of the program is a part of it.
  if (program_) program_->end(std::chrono::ceil<std::chrono::milliseconds>(give_up - std::chrono::steady_clock::now()));
  program_.reset();
  if (answered == 0) throw std::runtime_error(error);
  most_ = answered;
  report_(fmt::format("{}; it has answered {} of {} messages", error, answered, given.size()));
  return results;
}

/// Writes the answers of the program to `results`. Returns how many messages it has answered. If it has not answered
/// all of them, `error` says why.
std::size_t ProgramPublisher::publish(std::span<const OutgoingMessage> messages, std::vector<PublishResult>& results,
                                      std::string& error) {
  std::map<std::string, std::size_t, std::less<>> open;
  std::string input;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    open[messages[i].id] = i;
    input += line_of(messages[i]);
  }
  if (!program_) program_ = std::make_unique<Program>(command_);
  const Program::Answer answer = program_->exchange(input, messages.size(), timeout_);
  error = answer.error;
  try {
    for (const std::string& line : answer.lines) {
      const detail::JsonValue json = detail::parse_json(line);
      const auto found = open.find(text_in(json, "id"));
      if (found == open.end()) throw std::runtime_error("the program answers a message that it was not given");
      results[found->second] = result_in(json);
      open.erase(found);
    }
  } catch (const std::exception& e) {
    error = e.what();
  }
  return messages.size() - open.size();
}

}  // namespace txinbox::cli
