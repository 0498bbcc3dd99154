#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/error.hpp>

#include "base/private_api.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace detail {

/// An error in the JSON of one message. The message fails at each delivery. The text contains none of its values.
class JsonError : public Error {
 public:
  /// The code is `unreadable` if the text is not JSON.
  explicit JsonError(const std::string& text, ErrorCode code = ErrorCode::invalid_key) : Error(code, text) {}
};

/// A JSON value. A number keeps its text, because a double could lose digits.
struct JsonValue {
  enum class Kind { null, boolean, integer, number, string, array, object };

  Kind kind = Kind::null;
  bool boolean = false;
  long long integer = 0;           ///< The value of an integer.
  std::string text;                ///< The characters of a string, or the digits of an integer or number.
  std::vector<std::string> names;  ///< The names of an object's members, in order; one for each item.
  std::vector<JsonValue> items;    ///< The items of an array, or the values of an object's members.

  bool is_scalar() const { return kind != Kind::null && kind != Kind::array && kind != Kind::object; }

  /// Returns the member with that name, or null.
  const JsonValue* find(std::string_view name) const;
};

/// How deep arrays and objects may nest. The limit protects the stack.
inline constexpr int max_json_depth = 256;

/// How many values a text may hold; arrays and objects count, too. Each value takes many times the memory of its text.
inline constexpr std::size_t max_json_values = 1'000'000;

/// Parses a JSON text.
///
/// Errors: `JsonError` if the text is not valid UTF-8, is not valid JSON (RFC 8259; a lone surrogate is not valid), is
///         nested too deeply, has too many values, or has two members of one name in an object.
JsonValue parse_json(std::string_view text);

/// Returns the value as JSON text without spaces. Numbers keep their original text.
std::string to_json_text(const JsonValue& value);

/// Appends the text as a JSON string, with its quotes. The text must be valid UTF-8.
void append_json_string(std::string& out, std::string_view text);

}  // namespace detail
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
