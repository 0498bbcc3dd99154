#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/private_api.hpp"
#include "message/json/json_pointer.hpp"
#include "message/json/json_value.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace detail {

/// Returns the text of a string, number or boolean. A number keeps its text from the JSON.
///
/// Errors: `JsonError` that names `what` and the pointer, if the value is missing, null, an object or an array.
std::string scalar_text(const JsonValue& root, const JsonPointer& pointer, std::string_view what);

/// The same, but returns none if the value is missing or null.
std::optional<std::string> text_or_none(const JsonValue& root, const JsonPointer& pointer, std::string_view what);

/// A part of a key template: text, or where a value is.
struct KeyPart {
  enum class Kind {
    literal,  ///< The text itself.
    pointer,  ///< A member of the JSON.
    record,   ///< The record key of a broker's message.
    header,   ///< The header `text` of a broker's message.
  };

  Kind kind = Kind::literal;
  std::string text = {};
  JsonPointer pointer = JsonPointer("");
  bool is_hex = false;    ///< Whether the value is any bytes, which become hexadecimal.
  char separator = '\0';  ///< The character that ends this value in the key. It is escaped in the value. NUL: none.

  bool is_of_delivery() const { return kind == Kind::record || kind == Kind::header; }
};

/// Which values a key template can have.
enum class KeyValues {
  json,      ///< Members of the JSON.
  delivery,  ///< Also the record key and the headers of a broker's message.
};

/// Makes a business key from JSON, and from a broker's message.
///
/// The template is a JSON Pointer (`/order/no`), or text with pointers in braces (`coupon:{/coupon/id}:{/user}`). In
/// such a text, `{{` and `}}` stand for braces. A template that begins with a slash is a pointer. With
/// `KeyValues::delivery`, there may be `@key`, `@key-hex`, `@header:NAME` and `@header-hex:NAME` instead of a pointer.
///
/// If a template has one of these, different values never make the same key: each value but the last ends at the first
/// character of the text behind it. In the value, this character and `%` are written as `%` and two digits.
class KeyTemplate {
 public:
  /// Finds the value of a record key or of a header.
  using ValueOf = std::function<std::string(const KeyPart&)>;

  /// `name`: what errors call the template.
  ///
  /// Errors: `Error` invalid_argument for a value or a brace that is wrong; for a text without a value, which would
  ///         give every message the same key; for a separator that cannot be escaped.
  explicit KeyTemplate(std::string_view text, std::string_view name = "the key template",
                       KeyValues values = KeyValues::json);

  bool has_pointer() const;
  bool has_value_of_delivery() const;

  /// Errors: `JsonError`, as `scalar_text`; what `value_of` throws.
  std::string key(const JsonValue& root, const ValueOf& value_of = {}) const;

 private:
  std::vector<KeyPart> parts_;
};

}  // namespace detail
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
