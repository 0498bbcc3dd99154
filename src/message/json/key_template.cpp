#include "message/json/key_template.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "message/json/json_value.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::string scalar_text(const JsonValue& root, const JsonPointer& pointer, std::string_view what) {
  const JsonValue* value = pointer.find(root);
  if (value == nullptr) throw JsonError(fmt::format("{}: there is no {}", what, pointer.text()));
  switch (value->kind) {
    case JsonValue::Kind::null:
      throw JsonError(fmt::format("{}: {} is null", what, pointer.text()));
    case JsonValue::Kind::array:
      throw JsonError(fmt::format("{}: {} is an array", what, pointer.text()));
    case JsonValue::Kind::object:
      throw JsonError(fmt::format("{}: {} is an object", what, pointer.text()));
    case JsonValue::Kind::boolean:
      return value->boolean ? "true" : "false";
    case JsonValue::Kind::integer:
    case JsonValue::Kind::number:
    case JsonValue::Kind::string:
      break;
  }
  return value->text;
}

std::optional<std::string> text_or_none(const JsonValue& root, const JsonPointer& pointer, std::string_view what) {
  const JsonValue* value = pointer.find(root);
  if (value == nullptr || value->kind == JsonValue::Kind::null) return std::nullopt;
  return scalar_text(root, pointer, what);
}

namespace {

constexpr char escape = '%';

/// The value that `text` names, such as `/order/no` or `@header:ce_id`.
///
/// Errors: `Error` invalid_argument.
KeyPart value_named(std::string_view text, KeyValues values) {
  constexpr std::string_view header = "@header:";
  constexpr std::string_view hex_header = "@header-hex:";
  if (values == KeyValues::json || !text.starts_with('@')) {
    return {.kind = KeyPart::Kind::pointer, .pointer = JsonPointer(text)};
  }
  if (text == "@key" || text == "@key-hex") return {.kind = KeyPart::Kind::record, .is_hex = text == "@key-hex"};
  const bool is_hex = text.starts_with(hex_header);
  if (!is_hex && !text.starts_with(header)) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} is no value of a message; there are @key, @key-hex, @header:NAME and @header-hex:NAME", text));
  }
  const auto name = text.substr(is_hex ? hex_header.size() : header.size());
  if (name.empty()) {
    throw Error(ErrorCode::invalid_argument, "the name of the header that holds the key is empty");
  }
  return {.kind = KeyPart::Kind::header, .text = std::string(name), .is_hex = is_hex};
}

/// Whether a value can be escaped so that it does not contain this character.
bool can_separate(char c) {
  const bool is_word = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  return c > 0 && c < 0x7f && !is_word && c != escape;
}

/// Decides with which character each value but the last ends.
///
/// Returns false if there is no such character.
bool set_separators(std::vector<KeyPart>& parts) {
  KeyPart* last_value = nullptr;
  std::string_view between;
  for (KeyPart& part : parts) {
    if (part.kind == KeyPart::Kind::literal) {
      between = part.text;
      continue;
    }
    if (last_value != nullptr) {
      if (between.empty() || !can_separate(between.front())) return false;
      last_value->separator = between.front();
    }
    last_value = &part;
    between = {};
  }
  return true;
}

std::string escaped(const std::string& value, char separator) {
  if (separator == '\0') return value;
  std::string result;
  for (const char c : value) {
    if (c == separator || c == escape) {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace

KeyTemplate::KeyTemplate(std::string_view text, std::string_view name, KeyValues values) {
  const auto wrong = [name](std::string_view why) {
    return Error(ErrorCode::invalid_argument, fmt::format("{}{}", name, why));
  };
  if (text.starts_with('/') || (values == KeyValues::delivery && text.starts_with('@'))) {
    parts_.push_back(value_named(text, values));
    return;
  }
  std::string literal;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool doubled = i + 1 < text.size() && text[i + 1] == c;
    if ((c == '{' || c == '}') && doubled) {
      literal += c;
      ++i;
    } else if (c == '{') {
      const auto end = text.find('}', i);
      if (end == std::string_view::npos) throw wrong(": a brace is not closed; write {{ for a brace itself");
      const auto inner = text.substr(i + 1, end - i - 1);
      if (inner.empty()) throw wrong(": {} holds no JSON Pointer; write {/member}");
      parts_.push_back({.text = std::exchange(literal, {})});
      parts_.push_back(value_named(inner, values));
      i = end;
    } else if (c == '}') {
      throw wrong(": a closing brace stands alone; write }} for a brace itself");
    } else {
      literal += c;
    }
  }
  if (parts_.empty()) {
    throw wrong(
        " needs a JSON Pointer, such as /order/no, or a template with pointers in braces, such as "
        "coupon:{/coupon/id}:{/user}");
  }
  parts_.push_back({.text = std::move(literal)});
  if (has_value_of_delivery() && !set_separators(parts_)) {
    throw wrong(
        ": between two values, write a text that begins with a character such as # or :, and not with a letter, a "
        "digit or %: otherwise different values could make the same key");
  }
}

bool KeyTemplate::has_pointer() const {
  return std::ranges::any_of(parts_, [](const KeyPart& part) { return part.kind == KeyPart::Kind::pointer; });
}

bool KeyTemplate::has_value_of_delivery() const { return std::ranges::any_of(parts_, &KeyPart::is_of_delivery); }

std::string KeyTemplate::key(const JsonValue& root, const ValueOf& value_of) const {
  std::string result;
  for (const auto& part : parts_) {
    if (part.kind == KeyPart::Kind::literal) {
      result += part.text;
    } else if (part.kind == KeyPart::Kind::pointer) {
      const std::string value = scalar_text(root, part.pointer, "key");
      if (value.empty()) throw JsonError(fmt::format("key: {} is empty", part.pointer.text()));
      result += escaped(value, part.separator);
    } else {
      result += escaped(value_of(part), part.separator);
    }
  }
  return result;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
