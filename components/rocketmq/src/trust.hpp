#pragma once

#include <txinbox/version.hpp>

#include "client.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {

/// Whether the proxy can be reached, but its certificate cannot be trusted. gRPC reports the same error if the proxy
/// cannot be reached. Blocks for at most some seconds.
bool is_untrusted(const RocketMqServer& server);

}  // namespace rocketmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
