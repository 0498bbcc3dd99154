#pragma once

#include <sys/socket.h>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Whether data for this address leaves the host: the address is an IP address, but not a loopback address.
bool is_beyond_host(const sockaddr_storage& address) noexcept;

/// Whether data for the peer of a connected socket leaves the host. False if the socket is not connected.
bool reaches_beyond_host(int socket) noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
