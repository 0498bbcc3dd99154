#include "cli/relay/program_publisher.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>

#include "cli/base64.hpp"
#include "console/json_output.hpp"
#include "console/utf8.hpp"
#include "message/json/json_value.hpp"

namespace txinbox::cli {
namespace {

std::string text_in(const detail::JsonValue& json, std::string_view name) {
  const detail::JsonValue* value = json.find(name);
  return value != nullptr && value->kind == detail::JsonValue::Kind::string ? value->text : std::string();
}

/// An answer that is not understood must not count as a confirmation: the relay would delete the message.
void check_kind(const detail::JsonValue& json, std::string_view name, detail::JsonValue::Kind kind, const char* what) {
  const detail::JsonValue* value = json.find(name);
  if (value != nullptr && value->kind != kind) throw std::runtime_error(what);
}

bool is_true(const detail::JsonValue& json, std::string_view name) {
  const detail::JsonValue* value = json.find(name);
  return value != nullptr && value->kind == detail::JsonValue::Kind::boolean && value->boolean;
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
    json.set("payload_base64", base64(message.payload));
  }
  return json.text() + '\n';
}

std::vector<PublishResult> ProgramPublisher::operator()(std::span<const OutgoingMessage> messages) {
  std::map<std::string, std::size_t, std::less<>> open;
  std::string input;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    open[messages[i].id] = i;
    input += line_of(messages[i]);
  }
  try {
    if (!program_) program_ = std::make_unique<Program>(command_);
    std::vector<PublishResult> results(messages.size());
    for (const std::string& line : program_->exchange(input, messages.size(), timeout_)) {
      const detail::JsonValue answer = detail::parse_json(line);
      const auto found = open.find(text_in(answer, "id"));
      if (found == open.end()) throw std::runtime_error("the program answers a message that it was not given");
      check_kind(answer, "rejected", detail::JsonValue::Kind::boolean, "the program's \"rejected\" is not a boolean");
      check_kind(answer, "error", detail::JsonValue::Kind::string, "the program's \"error\" is not a string");
      PublishResult& result = results[found->second];
      result.error = text_in(answer, "error");
      if (is_true(answer, "rejected")) {
        result.status = PublishStatus::rejected;
      } else if (answer.find("error") != nullptr) {
        result.status = PublishStatus::failed;
      }
      open.erase(found);
    }
    return results;
  } catch (...) {
    program_.reset();
    throw;
  }
}

}  // namespace txinbox::cli
