#pragma once

/// @file
/// The JSON of a message, parsed once.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

namespace detail {
struct JsonValue;
}

/// The JSON of one message, parsed once. `JsonTemplate` and `JsonContent` take it instead of a text, and give the same
/// results:
///
///     const txinbox::JsonDocument json(body);
///     const txinbox::Message message{.business_key = key(json), .content = content(json)};
///
/// It contains copies of all values, so the text need not outlive it. Copies of the object share these values.
///
/// @threads any number may call one object.
class JsonDocument {
 public:
  /// @limits arrays and objects 256 deep, a million values. Each value takes many times the memory of its text.
  /// @errors `Error` invalid_key if `json` is not valid JSON (RFC 8259, in UTF-8), or if an object has a member twice.
  ///         The error text says at which byte the JSON is malformed. It holds none of the values. Such a message fails
  ///         at each delivery: dead-letter it.
  explicit JsonDocument(std::string_view json);

  /// Returns the text of the value to which a JSON Pointer (RFC 6901) points: a string as it is, a number as it is
  /// written in the JSON, a boolean as `true` or `false`. None if there is no value, or if it is null.
  ///
  /// @errors `Error` invalid_argument if the pointer is not valid; invalid_key if it finds an array or an object.
  std::optional<std::string> text(std::string_view pointer) const;

 private:
  friend class JsonContent;
  friend class JsonTemplate;

  std::shared_ptr<const detail::JsonValue> root_;  // never changes: copies share it
};

TXINBOX_API_END
}  // namespace txinbox
