#pragma once

#include <string>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace redis {

/// A script in Lua, and the SHA-1 by which the server finds it again.
struct Script {
  explicit Script(std::string text);

  const std::string text;
  const std::string sha;
};

/// One script for each step. The key of each is the business key's hash. Its fields:
///
/// - `state`: consuming, consumed or parked
/// - `token`: of the call that has, or last had, the lease
/// - `fence`: of the last lease
/// - `ends`: when the lease ends, in µs of the server's clock. 0: it was released
/// - `at`: when the state was set, in µs
/// - `hash`: of the content, hexadecimal; empty: none
/// - `stored`, `result`: whether the handler stored a result, and which
/// - `attempts`, `failures`, `error`, `id`, `owner`: for `max_attempts` and for operators
struct Scripts {
  /// ARGV: token, lease (ms), time to live (ms), content hash, message id, owner, valid_for (ms). Returns the state,
  /// and what belongs to it.
  const Script claim;

  /// ARGV: token, fence, time to live (ms), lease (ms). Returns 1, or 0 if the lease is lost.
  const Script renew;

  /// ARGV: token, fence, time to live (ms), whether there is a result, result. Returns as `renew`.
  const Script complete;

  /// ARGV: token, fence, time to live (ms), whether the failure counts, whether to park, max_attempts, error. Returns
  /// whether the message is parked.
  const Script fail;

  static const Scripts& get();
};

}  // namespace redis
TXINBOX_NAMESPACE_END
}  // namespace txinbox
