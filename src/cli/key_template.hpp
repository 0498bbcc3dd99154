#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json_line.hpp"
#include "json_pointer.hpp"

namespace txinbox::cli {

/// The text of a string, number or boolean: a number as it stood in the line.
///
/// Errors: `LineError` naming `what` and the pointer when it is missing, null, an object or an array.
std::string scalar_text(const JsonValue& root, const JsonPointer& pointer, std::string_view what);

/// How a line's business key is made: a JSON Pointer (`/order/no`), or text with pointers in braces
/// (`coupon:{/coupon/id}:{/user}`), in which `{{` and `}}` stand for braces. A text that begins with a
/// slash is a pointer.
class KeyTemplate {
 public:
  /// Errors: `UsageError` for a pointer or a brace that is wrong, and for a text without a pointer,
  ///         which would give every line the same key.
  explicit KeyTemplate(std::string_view text);

  /// Errors: `LineError`, as `scalar_text`.
  std::string key(const JsonValue& line) const;

 private:
  struct Part {
    std::string literal;
    JsonPointer pointer;
    bool is_pointer;
  };
  std::vector<Part> parts_;
};

}  // namespace txinbox::cli
