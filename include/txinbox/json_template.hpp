#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

namespace detail {
class KeyTemplate;
}

/// Makes a text, a business key for instance, of a message's JSON: a JSON Pointer (RFC 6901)
/// such as `/order/no`, or text with pointers in braces such as `coupon:{/coupon/id}:{/user}`. The same
/// as `--key` of the command.
///
/// What begins with a slash is a pointer; `{{` and `}}` in a template stand for braces. Strings are taken
/// as they are, numbers as they stand in the JSON (`1` and `1.0` are two keys), booleans as `true` and
/// `false`. Put a separator that no value holds between two pointers: `{/a}-{/b}` is one key for `x-y`,
/// `z` and for `x`, `y-z`.
///
/// Threads: any number may call one object.
class JsonTemplate {
 public:
  /// Errors: `Error` invalid_argument for a pointer or a brace that is wrong, and for a text without a
  ///         pointer, which would give every message the same key.
  explicit JsonTemplate(std::string_view text);

  /// Limits: 256 arrays and objects deep, a million values.
  /// Errors: `Error` invalid_key, with a text that holds none of the values: what is not valid JSON
  ///         (RFC 8259, in UTF-8), names a member twice, or has no such value, or null, an array or an
  ///         object in its place. Such a message fails at each delivery: dead-letter it.
  std::string operator()(std::string_view json) const;

  /// A function of the service's own message, whose JSON `member` is: a member, a member function, or any
  /// function of it. `JsonTemplate("/order/no").of(&Incoming::body)`
  template <class Member>
  auto of(Member member) const {
    return [self = *this, member = std::move(member)](const auto& message) -> std::string {
      return self(std::invoke(member, message));
    };
  }

 private:
  std::shared_ptr<const detail::KeyTemplate> template_;  // never changes: copies share it
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
