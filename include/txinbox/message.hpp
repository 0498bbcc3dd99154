#pragma once

/// @file
/// The message as the inbox knows it.

#include <chrono>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

struct Incoming;

/// The business key of one message, and the values that the inbox compares or stores.
///
/// @limits key and id are valid UTF-8 without NUL. They are compared byte by byte and never truncated. A key does not
///         begin with `txinbox-erased:`, and `valid_for` is not negative. A message that breaks a limit gets
///         `invalid_key` before any statement is sent.
struct Message {
  /// Identifies the message within the consumer, 1 to 255 bytes: an order number, a payment reference. It is not the
  /// broker's message id: a producer that sends a message again uses a new id.
  std::string business_key;

  /// The broker's id, 0 to 255 bytes. It is stored with the row for tracing, and never compared.
  std::string message_id = {};

  /// The bytes that must be equal in every delivery of this key: the amount and the account, but not a timestamp. The
  /// content can have any bytes and any length. The row stores its SHA-256. A delivery whose hash differs from the
  /// row's is a `conflict`, not a duplicate. Empty content is not compared.
  std::string content = {};

  /// The message as the broker delivered it. txinbox stores it only if the message fails, in the record of the failure.
  /// So a parked message is not lost if the broker has no dead-letter queue. A payload longer than 4 MiB is not stored.
  /// The function that `key_from` returns sets it.
  std::string payload = {};

  /// For how long a consumed delivery of this key makes later deliveries duplicates. A delivery after this time takes
  /// the row over, in the transaction of its own claim, and its handler runs. If that transaction rolls back, the old
  /// row stays. The new content may differ from the old one. The old result is removed. The time counts by the
  /// database's clock, from the end of the handler. If the earlier delivery had no `valid_for`, it counts from the
  /// start of that handler. Zero, the default: as long as the row exists.
  ///
  /// It is for requests that may be repeated on purpose after some time. It is not for messages of a broker, because a
  /// broker can deliver a message again at any time. Rows that are parked, torn or discarded do not expire.
  std::chrono::milliseconds valid_for{0};

  /// The broker's delivery, with its headers. `run` sets it, and a handler gets it from `Delivery::incoming`. An HTTP
  /// guard sets it, too: then it is the request, and the names of its headers are in lower case. If you call `consume`
  /// yourself, you may set it: then `Outbox::add` copies its trace context, and the listeners get it. txinbox reads it
  /// only during the call, so it must exist until `consume` returns. Null: there is none.
  const Incoming* incoming = nullptr;
};

/// Joins several fields into one `Message::content`. Two different lists of fields never give the same content:
/// ("a", "bc") differs from ("ab", "c"), and ("a") differs from ("a", "").
///
/// Each field becomes a netstring (D. J. Bernstein, 1997): its length in bytes as a decimal number, a colon, its bytes,
/// a comma. ("a", "bc") becomes `1:a,2:bc,`. This format is the same in every version, because hashes of it are stored.
///
/// The order of the fields matters. Give the same fields in the same order for all messages of a consumer. Do not leave
/// out a field that is empty. If a new version of a service uses another list of fields, its deliveries are in conflict
/// with every row that the old version wrote.
///
/// @limits any number of fields, any bytes. The result is empty only if there are no fields. Empty content is not
///         compared.
/// @threads any.
std::string content_of(std::span<const std::string_view> fields);

/// The same for a list in braces: `content_of({amount, account})`.
std::string content_of(std::initializer_list<std::string_view> fields);

TXINBOX_API_END
}  // namespace txinbox
