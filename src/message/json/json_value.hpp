#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// A JSON value that keeps what a double would lose: numbers stay the text that they were.
struct JsonValue {
  enum class Kind { null, boolean, integer, number, string, array, object };

  Kind kind = Kind::null;
  bool boolean = false;
  long long integer = 0;           ///< Of an integer that fits.
  std::string text;                ///< Of a string its characters, of an integer or number its digits.
  std::vector<std::string> names;  ///< Of an object, in order, one for each item.
  std::vector<JsonValue> items;    ///< Of an array or an object.

  bool is_scalar() const { return kind != Kind::null && kind != Kind::array && kind != Kind::object; }

  /// The member of that name, or null.
  const JsonValue* find(std::string_view name) const;
};

/// How deep arrays and objects may nest, so that no text can exhaust the stack.
inline constexpr int max_json_depth = 256;

/// How many values a text may hold, its arrays and objects among them: each takes many times the memory
/// that its text does.
inline constexpr std::size_t max_json_values = 1'000'000;

/// Errors: `JsonError` when the text is not valid UTF-8, not valid JSON (RFC 8259; a lone surrogate is
///         not), nested too deeply, of too many values, or names a member twice.
JsonValue parse_json(std::string_view text);

/// The value as JSON text without spaces; numbers as they stood in the text.
std::string to_json_text(const JsonValue& value);

/// Appends the text as a JSON string, quotes included. It must be valid UTF-8.
void append_json_string(std::string& out, std::string_view text);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
