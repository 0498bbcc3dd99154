#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "message/json/json_value.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// A JSON Pointer (RFC 6901).
class JsonPointer {
 public:
  /// Errors: `Error` invalid_argument if the text is not empty and does not begin with a slash, or if a tilde is not
  ///         followed by 0 or 1.
  explicit JsonPointer(std::string_view text);

  const std::string& text() const { return text_; }

  /// Whether the pointer is empty. It then points to the whole document.
  bool is_whole() const { return tokens_.empty(); }

  /// Returns the value that it points to, or null.
  const JsonValue* find(const JsonValue& root) const;

 private:
  std::string text_;
  std::vector<std::string> tokens_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
