#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/private_api.hpp"
#include "message/json/json_value.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
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

/// The fields of a message's content, as `JsonContent` describes them.
class JsonFields {
 public:
  JsonFields() = default;

  void add(JsonPointer pointer) { pointers_.push_back(std::move(pointer)); }

  bool empty() const { return pointers_.empty(); }

  /// Returns the content of these fields. It is empty only if there are no fields.
  std::string content(const JsonValue& root) const;

 private:
  std::vector<JsonPointer> pointers_;
};

}  // namespace detail
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
