#pragma once

#include <sys/socket.h>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Whether what is sent to this address leaves the host: it is an IP address, and not one of the loopback.
bool is_beyond_host(const sockaddr_storage& address) noexcept;

/// The same of a connected socket's other end. False for a socket that is not connected.
bool reaches_beyond_host(int socket) noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
