#pragma once

/// @file
/// The JSON of messages: takes the business key and the content from it.

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

namespace detail {
class JsonFields;
class KeyTemplate;
struct JsonValue;
}  // namespace detail

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
  /// @errors `Error` unreadable if `json` is not valid JSON (RFC 8259, in UTF-8), or if an object has a member twice.
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

/// Makes a text from a message's JSON, for example its business key. The template is a JSON Pointer (RFC 6901) such as
/// `/order/no`, or text with pointers in braces such as `coupon:{/coupon/id}:{/user}`. The option `--key` of the
/// command does the same.
///
/// A template that begins with a slash is one pointer. In other templates, write `{{` and `}}` for braces themselves.
///
/// A string is used as it is, a number as it is written in the JSON (`1` and `1.0` are two keys), a boolean as `true`
/// or `false`. Between two pointers, put a separator that no value contains: `{/a}-{/b}` makes the same key from `x-y`
/// and `z` as from `x` and `y-z`.
///
/// @threads any number may call one object.
class JsonTemplate {
 public:
  /// Reads the template.
  ///
  /// @errors `Error` invalid_argument if a pointer or a brace is not valid, and if the text has no pointer: every
  ///         message would get the same key.
  explicit JsonTemplate(std::string_view text);

  /// The text for this message.
  ///
  /// @limits arrays and objects 256 deep, a million values.
  /// @errors `Error` unreadable if `json` is not valid JSON (RFC 8259, in UTF-8), or if an object has a member twice.
  ///         `Error` invalid_key if a pointer finds nothing, null, an array, an object, or an empty string: all
  ///         messages without a value would get the same key. The error text holds none of the values. Such a message
  ///         fails at each delivery: dead-letter it.
  std::string operator()(std::string_view json) const;

  /// The same for a message that is parsed already.
  ///
  /// @errors `Error` invalid_key if a pointer finds nothing, null, an array, an object, or an empty string.
  std::string operator()(const JsonDocument& json) const;

  /// A function of the service's own message: `JsonTemplate("/order/no").of(&Incoming::body)`. `member` gives the JSON
  /// of that message: it is a member, a member function, or any function of the message.
  template <class Member>
  auto of(Member member) const {
    return [self = *this, member = std::move(member)](const auto& message) -> std::string {
      return self(std::invoke(member, message));
    };
  }

 private:
  std::shared_ptr<const detail::KeyTemplate> template_;  // never changes: copies share it
};

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
  JsonContent(std::initializer_list<std::string_view> pointers);

  /// The content of this message. It is never empty.
  ///
  /// @limits as `JsonTemplate`.
  /// @errors `Error` unreadable if `json` is not valid JSON, or if an object has a member twice.
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
