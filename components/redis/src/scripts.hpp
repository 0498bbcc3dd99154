#pragma once

#include <string>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace redis {

/// A script in Lua, and its SHA-1, which identifies it on the server.
struct Script {
  explicit Script(std::string text);

  const std::string text;
  const std::string sha;
};

/// One script for each step. Each script has one key, that of the business key. Its value is a string:
/// `txinbox1 JSON`, a line feed, and the result of the handler. A script refuses another value with WRONGTYPE, and
/// leaves it as it is. The JSON is one object, whose values are strings:
///
/// - `state`: consuming, consumed or parked
/// - `token`: the token of the call that has the lease, or had it last
/// - `fence`: the fence of the last lease
/// - `ends`: when the lease ends, in µs of the server's clock. 0 if it was released
/// - `at`: when the state was set, in µs
/// - `hash`: the hash of the content, hexadecimal. Empty if there is no content
/// - `stored`: whether the handler has stored a result, 1 or 0. Only if consumed
/// - `attempts`, `failures`, `error`, `id`, `owner`: for `max_attempts` and for operators
struct Scripts {
  /// ARGV: token, lease (ms), time to live (ms), content hash, message id, owner, valid_for (ms). Returns the state and
  /// the values that belong to it.
  const Script claim;

  /// ARGV: token, fence, time to live (ms), lease (ms). Returns 1, or 0 if the lease is lost.
  const Script renew;

  /// ARGV: token, fence, time to live (ms), whether there is a result, result. Returns the same as `renew`.
  const Script complete;

  /// ARGV: token, fence, time to live (ms), whether the failure counts, whether to park, max_attempts, error. Returns
  /// whether the message is parked.
  const Script fail;

  static const Scripts& get();
};

}  // namespace redis
TXINBOX_NAMESPACE_END
}  // namespace txinbox
