#pragma once

#include <string>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// What identifies one message to the inbox. The handler has the rest.
///
/// Limits: key and id are valid UTF-8 without NUL, compared byte for byte and never truncated. What
///         breaks a limit is refused with `invalid_key` before a statement is sent.
struct Message {
  /// The identity within the consumer, 1 to 255 bytes: an order number, a payment reference. Not the
  /// broker's message id: a producer that resends does so under a new one.
  std::string business_key;

  /// The broker's id, 0 to 255 bytes. Recorded with the row for tracing, never compared.
  std::string message_id = {};

  /// The bytes that must be equal in every delivery of this key: the amount and the account, not a
  /// timestamp. Any bytes, of any length; their SHA-256 is stored with the row. A delivery whose hash
  /// differs from the row's is a `conflict`, not a duplicate. Empty: not compared.
  std::string content = {};

  /// The message as the broker gave it. Kept only when it fails, beside its errors, so that it is not lost
  /// when it is parked and the broker has no dead-letter queue. Empty, or longer than 4 MiB: not kept.
  std::string payload = {};
};

TXINBOX_NAMESPACE_END
}  // namespace txinbox
