#include "message/json/json_pointer.hpp"

#include <charconv>

#include <fmt/format.h>
#include <txinbox/error.hpp>
#include <txinbox/message.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

namespace {

std::string unescaped(std::string_view token, std::string_view pointer) {
  std::string result;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      result += token[i];
      continue;
    }
    const char next = i + 1 < token.size() ? token[i + 1] : '\0';
    if (next != '0' && next != '1') {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("in the JSON Pointer {}, write ~0 for a tilde and ~1 for a slash", pointer));
    }
    result += next == '0' ? '~' : '/';
    ++i;
  }
  return result;
}

const JsonValue* element(const JsonValue& array, std::string_view token) {
  if (token.empty() || (token.size() > 1 && token[0] == '0')) return nullptr;
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  if (error != std::errc() || end != token.data() + token.size()) return nullptr;
  return index < array.items.size() ? &array.items[index] : nullptr;
}

}  // namespace

JsonPointer::JsonPointer(std::string_view text) : text_(text) {
  if (text.empty()) return;
  if (text[0] != '/') {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is no JSON Pointer: those begin with a slash, such as /order/no", text));
  }
  for (std::size_t at = 0; at != std::string_view::npos;) {
    const auto next = text.find('/', at + 1);
    tokens_.push_back(unescaped(text.substr(at + 1, next == std::string_view::npos ? next : next - at - 1), text));
    at = next;
  }
}

const JsonValue* JsonPointer::find(const JsonValue& root) const {
  const JsonValue* value = &root;
  for (const auto& token : tokens_) {
    if (value->kind == JsonValue::Kind::object) {
      value = value->find(token);
    } else if (value->kind == JsonValue::Kind::array) {
      value = element(*value, token);
    } else {
      return nullptr;
    }
    if (value == nullptr) return nullptr;
  }
  return value;
}

std::string JsonFields::content(const JsonValue& root) const {
  std::vector<std::string> texts;
  texts.reserve(pointers_.size());
  for (const JsonPointer& pointer : pointers_) {
    const JsonValue* value = pointer.find(root);
    // A missing field gives an empty text. No value does, because no JSON text is empty.
    texts.push_back(value == nullptr ? std::string() : to_json_text(*value));
  }
  const std::vector<std::string_view> fields(texts.begin(), texts.end());
  return content_of(fields);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
