#pragma once

#include <txinbox/version.hpp>

#include "client.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {

/// Whether the proxy can be reached, and its certificate is not to be trusted. gRPC does not tell this from a proxy
/// that cannot be reached. It waits for some seconds at most.
bool is_untrusted(const Access& access);

}  // namespace rocketmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
