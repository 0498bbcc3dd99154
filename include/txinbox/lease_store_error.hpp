#pragma once

/// @file
/// The errors of a lease store that is not the database.

#include <stdexcept>
#include <string>
#include <utility>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// A `LeaseStore` throws it if a step failed, or if nobody can know whether the step took effect.
///
/// Do not acknowledge the message after such an error: `action_for` says `redeliver`.
class LeaseStoreError : public std::runtime_error {
 public:
  /// Whether the same step can succeed later without anybody's help.
  enum class Kind {
    transient,  ///< A lost connection, a time-out, a server that starts or is read-only. `is_transient` is true.
    permanent,  ///< No memory left, a disk error, a wrong type: somebody must fix it. It does not count as a failure.
  };

  /// `store` is the name of the product, such as "redis". `code` is the server's own code, such as "OOM", and holds no
  /// value of the message. `text` is what `what()` returns.
  LeaseStoreError(Kind kind, const std::string& store, std::string code, const std::string& text)
      : std::runtime_error(text), kind_(kind), code_(store + " " + std::move(code)) {}

  /// Whether a retry can succeed.
  Kind kind() const noexcept { return kind_; }

  /// The store and its code, such as "redis OOM". `error_class` also returns this.
  const std::string& code() const noexcept { return code_; }

 private:
  Kind kind_;
  std::string code_;
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
