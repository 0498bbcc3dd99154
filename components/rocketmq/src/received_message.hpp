#pragma once

#include <cstdint>
#include <memory>

#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

#include "rocketmq.grpc.pb.h"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {

/// Converts a message for `run`. `is_fifo`: whether the broker keeps the order of the message's group.
Incoming incoming_of(apache::rocketmq::v2::Message message, std::uint64_t ticket, bool is_fifo);

/// The message of such a delivery. It has no body, unless the body is compressed.
const apache::rocketmq::v2::Message& message_of(const Incoming& incoming);

}  // namespace rocketmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
