#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

namespace detail {
class JsonFields;
}

/// Makes `Message::content` of what JSON Pointers (RFC 6901) find in a message: the values that must be
/// equal in every delivery of its key. The same as `--content` of the command.
///
/// `JsonContent({"/amount", "/account"})` is `content_of` with one field for each pointer: the value as
/// JSON text without spaces, and nothing where there is none. So a missing member differs from null and
/// from "", and 1 from "1". Numbers stay as they were written (1.0 and 1.00 differ), strings are the same
/// however they were escaped, and an object's members keep their order: take the members rather than an
/// object whose order may change. That stays so in every version, since hashes of it are stored.
///
/// Threads: any number may call one object.
class JsonContent {
 public:
  /// Limits: at least one pointer; the empty one is the whole text.
  /// Errors: `Error` invalid_argument for none, or for one that is wrong.
  explicit JsonContent(std::span<const std::string_view> pointers);
  JsonContent(std::initializer_list<std::string_view> pointers)
      : JsonContent(std::span(pointers.begin(), pointers.size())) {}

  /// Never empty.
  ///
  /// Limits: as `JsonTemplate`.
  /// Errors: `Error` invalid_key for what is not valid JSON, or names a member twice.
  std::string operator()(std::string_view json) const;

  /// A function of the service's own message, as that of `JsonTemplate`.
  template <class Member>
  auto of(Member member) const {
    return [self = *this, member = std::move(member)](const auto& message) -> std::string {
      return self(std::invoke(member, message));
    };
  }

 private:
  std::shared_ptr<const detail::JsonFields> fields_;  // never changes: copies share it
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
