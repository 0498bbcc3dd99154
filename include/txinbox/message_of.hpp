#pragma once

/// @file
/// Makes the inbox's message from a broker's delivery.

#include <functional>
#include <string>
#include <string_view>

#include <txinbox/message.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// Makes the inbox's message from a delivery. `run` calls it once for each delivery, on the thread that polls, and
/// makes `Message::message_id` a `traceable_id`.
///
/// If it throws, the delivery becomes a dead letter. The reason is "invalid_key" for `Error` invalid_key, and
/// "unreadable" for any other exception. `std::bad_alloc` ends `run` instead.
///
///     txinbox::run(source, consumer, txinbox::key_from("/order/no"), handle_order);
using MessageOf = std::function<Message(const Incoming&)>;

/// Returns a function that takes the business key from this place of a delivery. The option `--key` of the command
/// takes the same text:
///
/// - `/order/no`: a value in the JSON of the body, by its JSON Pointer (RFC 6901).
/// - `@key`: the broker's key of the message (`Incoming::key`), such as the record key of Kafka.
/// - `@header:NAME`: the header of this name, such as `@header:idempotency-key`. `Incoming::headers` says what a name
///   means.
/// - `@key-hex`, `@header-hex:NAME`: the same for any bytes, such as a Long, a UUID or Avro. The business key is their
///   hexadecimal form in lower case: the Long 42 of Kafka's serializer is "000000000000002a". At most 127 bytes,
///   because a business key has at most 255.
/// - Text with some of these in braces. The id of a CloudEvent is unique only for its source, so take both:
///
///       txinbox::key_from("{@header:ce_source}#{@header:ce_id}")
///
/// If text in braces has a header or the record key, different values never make the same key. Each value but the last
/// ends at the first character of the text behind it. In the value, this character and `%` are written as `%` and two
/// hexadecimal digits. So this character cannot be a letter, a digit or `%`, and must be in ASCII. A template of JSON
/// members only is the same as for `JsonTemplate`, which escapes nothing.
///
/// The function also sets `Message::message_id` to the `traceable_id` of the broker's id, and `Message::payload` to the
/// body. So if a handler fails, the inbox stores the body, which can be personal data. It throws `Error` invalid_key if
/// a value is missing or empty, and if the message has several headers of the name with different values. It reads the
/// body only if the text has a pointer. Then it throws `Error` unreadable if the message has no body, or if the body is
/// not JSON.
///
/// @errors `Error` invalid_argument if the text is not valid.
MessageOf key_from(std::string_view text);

/// Returns a broker's message id as `Message::message_id` can have it: the id itself, if it is UTF-8 without NUL; else
/// "0x" and its bytes in hexadecimal. The result has at most 255 bytes: a longer id is cut after a character. The id is
/// for tracing and is never compared, so no message is refused because of it.
std::string traceable_id(std::string id);

TXINBOX_API_END
}  // namespace txinbox
