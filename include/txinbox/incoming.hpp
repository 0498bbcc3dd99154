#pragma once

/// @file
/// A delivery as a broker gave it.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// A header of a delivery. Some brokers call it a property. A name may come more than once.
struct IncomingHeader {
  std::string_view name;   ///< As the producer wrote it, or the name of a property of the broker: `Incoming::headers`.
  std::string_view value;  ///< Any bytes. Empty if the broker gave no value.
};

/// One delivery, as a broker gave it. Its views stay valid as long as a copy of `owner` exists.
struct Incoming {
  std::string_view body = {};                ///< The bytes of the message.
  bool has_body = true;                      ///< False for a message without a body, such as a tombstone of Kafka.
  std::optional<std::string_view> key = {};  ///< The record key of Kafka, the first key of RocketMQ. `Ordering::key`
                                             ///< uses it. None if the broker or the producer gave none.
  std::string_view id = {};                  ///< The broker's id of the message, such as "orders/3@42", cut to 255
                                             ///< bytes. For tracing. A producer can choose it on some brokers, so it
                                             ///< can have any bytes: escape them in a log. See `traceable_id`.

  /// First the properties that the broker keeps apart from the headers, such as the message id of RabbitMQ. Then the
  /// headers of the producer, in the order in which it added them, or sorted by name if the broker keeps no order.
  ///
  /// A header of the producer never shadows a property of the broker: if the message has a property of the same name,
  /// the header is listed with `header:` before its name. So `header("message-id")` is the id of this message, although
  /// its producer has copied the headers of another message. A property that identifies the message (message-id of
  /// RabbitMQ, keys of RocketMQ) has its name for itself, also in a message without this property.
  std::span<const IncomingHeader> headers = {};

  std::optional<std::uint64_t> lane = {};  ///< The messages of one lane have an order, and are acknowledged in this
                                           ///< order: a partition of Kafka, a message group of RocketMQ. None: there
                                           ///< is no order.
  int deliveries = 0;  ///< How often the broker has delivered the message, with this time. 0 if it does not count.
  int runs = 0;        ///< How often `run` has given this delivery to the consumer, with this time. `run` sets it, and
                       ///< a source leaves it 0.
  std::chrono::system_clock::time_point sent = {};  ///< When the producer sent it. The epoch if it is not known.

  std::uint64_t ticket = 0;                ///< The source uses it to identify the delivery.
  std::shared_ptr<const void> owner = {};  ///< Keeps the bytes of the views.

  /// Returns the value of the first header of this name. None if there is no such header. Names are compared byte by
  /// byte.
  std::optional<std::string_view> header(std::string_view name) const noexcept;
};

TXINBOX_API_END
}  // namespace txinbox
