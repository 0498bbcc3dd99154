#pragma once

/// @file
/// Takes the content of a message from JSON.

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <txinbox/json_document.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

namespace detail {
class JsonFields;
}

/// Makes `Message::content` from the values that JSON Pointers (RFC 6901) find in a message. Choose the values that
/// must be equal in every delivery of a key. The option `--content` of the command does the same.
///
/// `JsonContent({"/amount", "/account"})` is `content_of` with one field for each pointer. The field is the value as
/// JSON text without spaces. If the value is missing, the field is empty.
///
/// - A missing member differs from null and from "". The number 1 differs from the string "1".
/// - Numbers stay as they were written: 1.0 and 1.00 differ.
/// - Strings are equal however they were escaped.
/// - The members of an object keep their order. If that order may change, use pointers to the members instead of a
///   pointer to the object.
///
/// This is the same in every version, because hashes of it are stored.
///
/// @threads any number may call one object.
class JsonContent {
 public:
  /// Compares the values that these pointers find, in this order.
  ///
  /// @limits at least one pointer. The empty pointer means the whole text.
  /// @errors `Error` invalid_argument if there is no pointer, or if one is not valid.
  explicit JsonContent(std::span<const std::string_view> pointers);

  /// The same for a list in braces: `JsonContent({"/amount", "/account"})`.
  JsonContent(std::initializer_list<std::string_view> pointers)
      : JsonContent(std::span(pointers.begin(), pointers.size())) {}

  /// The content of this message. It is never empty.
  ///
  /// @limits as `JsonTemplate`.
  /// @errors `Error` invalid_key if `json` is not valid JSON, or if an object has a member twice.
  std::string operator()(std::string_view json) const;

  /// The same for a message that is parsed already.
  std::string operator()(const JsonDocument& json) const;

  /// A function of the service's own message, as `JsonTemplate::of`.
  template <class Member>
  auto of(Member member) const {
    return [self = *this, member = std::move(member)](const auto& message) -> std::string {
      return self(std::invoke(member, message));
    };
  }

 private:
  std::shared_ptr<const detail::JsonFields> fields_;  // never changes: copies share it
};

TXINBOX_API_END
}  // namespace txinbox
