#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "message/json/json_pointer.hpp"
#include "message/json/json_value.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Returns the text of a string, number or boolean. A number keeps its text from the JSON.
///
/// Errors: `JsonError` that names `what` and the pointer, if the value is missing, null, an object or an array.
std::string scalar_text(const JsonValue& root, const JsonPointer& pointer, std::string_view what);

/// The same, but returns none if the value is missing or null.
std::optional<std::string> text_or_none(const JsonValue& root, const JsonPointer& pointer, std::string_view what);

/// Makes a business key from JSON.
///
/// The template is a JSON Pointer (`/order/no`), or text with pointers in braces (`coupon:{/coupon/id}:{/user}`). In
/// such a text, `{{` and `}}` stand for braces. A template that begins with a slash is a pointer.
class KeyTemplate {
 public:
  /// `name`: what errors call the template.
  ///
  /// Errors: `Error` invalid_argument for a pointer or a brace that is wrong, and for a text without a pointer, which
  ///         would give every message the same key.
  explicit KeyTemplate(std::string_view text, std::string_view name = "the key template");

  /// Errors: `JsonError`, as `scalar_text`.
  std::string key(const JsonValue& root) const;

 private:
  struct Part {
    std::string literal;
    JsonPointer pointer;
    bool is_pointer;
  };
  std::vector<Part> parts_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
