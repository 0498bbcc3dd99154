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
/// The functions of this header return such a function. It sets the business key, sets `Message::message_id` to the
/// `traceable_id` of the broker's id, and sets `Message::payload` to the body. So if a handler fails, the inbox stores
/// the body, which can be personal data. If the key is missing or empty, the function throws `Error` invalid_key. If
/// the key is in the body, and the message has no body or the body is not JSON, it throws `Error` unreadable.
///
///     txinbox::run(source, consumer, txinbox::key_from_json("/order/no"), handle_order);
using MessageOf = std::function<Message(const Incoming&)>;

/// The type of the bytes of a record key or of a header.
enum class KeyBytes {
  text,  ///< Text in UTF-8. It is the business key as it is.
  hex,   ///< Any bytes, such as a Long, a UUID or Avro. The business key is their hexadecimal form in lower case: the
         ///< Long 42 of Kafka's serializer is "000000000000002a". At most 127 bytes, because a business key has at most
         ///< 255.
};

/// The business key is the broker's key of the message (`Incoming::key`), such as the record key of Kafka.
MessageOf key_from_record(KeyBytes bytes = KeyBytes::text);

/// The business key is the header of this name, such as "idempotency-key". The id of a CloudEvent is unique only for
/// its source: take both with `key_from_template`. If a message has several headers of this name with different values,
/// its delivery has no key: the function throws `Error` invalid_key. `Incoming::headers` says what a name means.
///
/// @errors `Error` invalid_argument if the name is empty.
MessageOf key_from_header(std::string name, KeyBytes bytes = KeyBytes::text);

/// The business key is in the JSON of the body. `text` is a JSON Pointer or a template, as for `JsonTemplate`.
///
/// @errors `Error` invalid_argument if the template is not valid.
MessageOf key_from_json(std::string_view text);

/// The business key is made from headers, the record key, and JSON members of the body together. `text` is a template
/// as for `JsonTemplate`, with these values besides pointers: `{@header:NAME}` and `{@key}`, and for any bytes
/// `{@header-hex:NAME}` and `{@key-hex}` (`KeyBytes::hex`). The option `--key` of the command does the same.
///
///     txinbox::key_from_template("{@header:ce_source}#{@header:ce_id}")
///
/// If the template has a header or the record key, different values never make the same key. Each value but the last
/// ends at the first character of the text behind it. In the value, this character and `%` are written as `%` and two
/// hexadecimal digits. So this character cannot be a letter, a digit or `%`, and must be in ASCII. A template of JSON
/// members only is the same as for `key_from_json`, which escapes nothing.
///
/// A missing or empty header or record key is `Error` invalid_key, and so are several headers of the name with
/// different values. The body is read only if the template has a pointer.
///
/// @errors `Error` invalid_argument if the template is not valid.
MessageOf key_from_template(std::string_view text);

/// Returns a broker's message id as `Message::message_id` can have it: the id itself, if it is UTF-8 without NUL; else
/// "0x" and its bytes in hexadecimal. The result has at most 255 bytes: a longer id is cut after a character. The id is
/// for tracing and is never compared, so no message is refused because of it.
std::string traceable_id(std::string id);

/// The same function, but it puts a text before each business key.
MessageOf prefixed_message(std::string prefix, MessageOf message_of);

TXINBOX_API_END
}  // namespace txinbox
