#pragma once

#include <cstdint>
#include <memory>

#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

#include "rocketmq.grpc.pb.h"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {

/// What `run` gets of a message. `is_fifo`: whether the broker keeps the order of its group.
Incoming incoming_of(apache::rocketmq::v2::Message message, std::uint64_t ticket, bool is_fifo);

}  // namespace rocketmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
