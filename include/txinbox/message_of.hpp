#pragma once

/// @file
/// Makes the inbox's message of a broker's delivery.

#include <functional>
#include <string>
#include <string_view>

#include <txinbox/message.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

/// Makes the inbox's message of a delivery. `run` calls it once for each delivery, on the thread that polls. If it
/// throws, the delivery is a dead letter: with the reason "invalid_key" for `Error` invalid_key, otherwise with
/// "unreadable".
///
/// The functions of this header make one: they set the business key, `Message::message_id` to the broker's id and
/// `Message::payload` to the body. A key that is not there, or that is empty, is never an empty key, but `Error`
/// invalid_key.
///
///     txinbox::run(source, consumer, txinbox::key_from_json("/order/no"), handle_order);
using MessageOf = std::function<Message(const Incoming&)>;

/// The business key is the broker's key of the message (`Incoming::key`): the record key of Kafka.
MessageOf key_from_record();

/// The business key is the first header of this name, such as "ce_id".
///
/// @errors `Error` invalid_argument if the name is empty.
MessageOf key_from_header(std::string name);

/// The business key is in the JSON of the body: `text` is a JSON Pointer or a template, as of `JsonTemplate`.
///
/// @errors `Error` invalid_argument if the template is not valid.
MessageOf key_from_json(std::string_view text);

/// The same function, with a text before each business key.
MessageOf prefixed(std::string prefix, MessageOf message_of);

TXINBOX_NAMESPACE_END
}  // namespace txinbox
