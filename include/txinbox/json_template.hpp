#pragma once

/// @file
/// Takes the business key of a message from JSON.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <txinbox/json_document.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

namespace detail {
class KeyTemplate;
}

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
  /// @errors `Error` invalid_key if `json` is not valid JSON (RFC 8259, in UTF-8), if an object has a member twice, or
  ///         if a pointer finds nothing, null, an array, an object, or an empty string: all messages without a value
  ///         would get the same key. The error text holds none of the values. Such a message fails at each delivery:
  ///         dead-letter it.
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

TXINBOX_API_END
}  // namespace txinbox
