#include "message/json/key_template.hpp"

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "message/json/json_error.hpp"

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

KeyTemplate::KeyTemplate(std::string_view text, std::string_view name) {
  const auto wrong = [name](std::string_view why) {
    return Error(ErrorCode::invalid_argument, fmt::format("{}{}", name, why));
  };
  if (text.starts_with('/')) {
    parts_.push_back({{}, JsonPointer(text), true});
    return;
  }
  std::string literal;
  bool has_pointer = false;
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
      parts_.push_back({std::move(literal), JsonPointer(""), false});
      parts_.push_back({{}, JsonPointer(inner), true});
      literal.clear();
      has_pointer = true;
      i = end;
    } else if (c == '}') {
      throw wrong(": a closing brace stands alone; write }} for a brace itself");
    } else {
      literal += c;
    }
  }
  if (!has_pointer) {
    throw wrong(
        " needs a JSON Pointer, such as /order/no, or a template with pointers in braces, such as "
        "coupon:{/coupon/id}:{/user}");
  }
  parts_.push_back({std::move(literal), JsonPointer(""), false});
}

std::string KeyTemplate::key(const JsonValue& root) const {
  std::string result;
  for (const auto& part : parts_) {
    const std::string text = part.is_pointer ? scalar_text(root, part.pointer, "key") : part.literal;
    if (part.is_pointer && text.empty()) throw JsonError(fmt::format("key: {} is empty", part.pointer.text()));
    result += text;
  }
  return result;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
