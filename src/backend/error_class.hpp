#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include <txinbox/version.hpp>

#include "types/enum_names.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The meaning of a database error for the inbox. Only the error's code decides this.
enum class ErrorClass {
  duplicate_key,
  deadlock,
  lock_timeout,
  serialization_failure,
  statement_timeout,
  connection_lost,  ///< The session cannot be used any more.
  read_only,        ///< The server became a replica. Another session may reach the new primary.
  commit_refused,   ///< The guard has refused a handler's own commit.
  environment,      ///< A full disk, no memory, an I/O error, a limit, a missing table. No message caused it.
  other,
};

/// Whether the same run may succeed soon, without any action of an operator.
constexpr bool is_transient(ErrorClass c) noexcept {
  return c != ErrorClass::duplicate_key && c != ErrorClass::commit_refused && c != ErrorClass::environment &&
         c != ErrorClass::other;
}

/// Whether a session that saw this error must be closed.
constexpr bool is_fatal_to_session(ErrorClass c) noexcept {
  return c == ErrorClass::connection_lost || c == ErrorClass::read_only;
}

/// Returns a name such as "deadlock". Empty for `environment` and `other`: the database's code says more than a name.
constexpr std::string_view to_string(ErrorClass c) noexcept {
  constexpr detail::EnumNames<ErrorClass, ErrorClass::other> names(
      "duplicate_key", "deadlock", "lock_timeout", "serialization_failure", "statement_timeout", "connection_lost",
      "read_only", "commit_refused", "", "");
  return names[c];
}

/// The meaning of an error code of a database. Each database lists its codes once, in its database.cpp.
struct ErrorMeaning {
  ErrorClass error_class = ErrorClass::other;  ///< The meaning for the inbox.
  std::string_view text = {};                  ///< The meaning for people, in a few words. Empty if there is no text.
};

template <class Code>
struct ErrorCodeMeaning {
  Code code;
  ErrorMeaning meaning;
};

/// Returns the first entry for which `fits(code)` is true. Null if there is none.
template <class Code, std::size_t N, class Fits>
constexpr const ErrorMeaning* find_meaning(const std::array<ErrorCodeMeaning<Code>, N>& meanings, const Fits& fits) {
  const auto* const found = std::ranges::find_if(meanings, fits, &ErrorCodeMeaning<Code>::code);
  return found == meanings.end() ? nullptr : &found->meaning;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
