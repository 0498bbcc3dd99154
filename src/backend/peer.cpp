#include "backend/peer.hpp"

#include <netinet/in.h>

#include <cstring>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

bool is_beyond_host(const sockaddr_storage& address) noexcept {
  constexpr unsigned loopback_net = 127;
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return ntohl(v4.sin_addr.s_addr) >> 24U != loopback_net;
  }
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    const bool loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) ||
                          (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) && v6.sin6_addr.s6_addr[12] == loopback_net);
    return !loopback;
  }
  return false;
}

bool reaches_beyond_host(int socket) noexcept {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0 && is_beyond_host(address);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
