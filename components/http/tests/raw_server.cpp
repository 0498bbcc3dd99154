#include "raw_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <utility>

#include <doctest/doctest.h>

namespace txinbox::test {
namespace {

/// Appends what comes next. Returns false at the end of the connection.
bool read_more(int socket, std::string& to) {
  std::array<char, 64UL * 1024> buffer{};
  const ssize_t count = ::recv(socket, buffer.data(), buffer.size(), 0);
  if (count <= 0) return false;
  to.append(buffer.data(), static_cast<std::size_t>(count));
  return true;
}

}  // namespace

RawServer::RawServer(Serve serve, int receive_buffer)
    : serve_(std::move(serve)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (receive_buffer > 0) {
    ::setsockopt(listener_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
  REQUIRE(::bind(listener_, generic, size) == 0);
  REQUIRE(::listen(listener_, 16) == 0);
  REQUIRE(::getsockname(listener_, generic, &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

RawServer::~RawServer() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    if (current_ >= 0) ::shutdown(current_, SHUT_RDWR);
  }
  thread_.join();
  ::close(listener_);
}

std::string RawServer::url(const std::string& scheme) const {
  return scheme + "://127.0.0.1:" + std::to_string(port_) + "/events";
}

void RawServer::run() {
  while (true) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    {
      const std::lock_guard lock(mutex_);
      if (is_over_ || socket < 0) {
        if (socket >= 0) ::close(socket);
        return;
      }
      current_ = socket;
    }
    serve_(socket);
    const std::lock_guard lock(mutex_);
    current_ = -1;
    ::close(socket);
  }
}

std::string read_head(int socket) {
  std::string request;
  while (request.find("\r\n\r\n") == std::string::npos) {
    if (!read_more(socket, request)) return {};
  }
  return request;
}

std::string read_request(int socket) {
  std::string request = read_head(socket);
  if (request.empty()) return {};
  const std::string name = "Content-Length: ";
  const std::size_t field = request.find(name);
  REQUIRE(field != std::string::npos);
  const std::size_t end = request.find("\r\n\r\n") + 4 + std::stoul(request.substr(field + name.size()));
  while (request.size() < end) {
    if (!read_more(socket, request)) return {};
  }
  return request;
}

bool send_all(int socket, const std::string& bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count = ::send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return false;
    sent += static_cast<std::size_t>(count);
  }
  return true;
}

std::vector<int> sockets_to(int port) {
  std::vector<int> sockets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int socket = std::stoi(entry.path().filename());
    sockaddr_in address{};
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
    if (::getpeername(socket, generic, &size) == 0 && address.sin_family == AF_INET &&
        ntohs(address.sin_port) == port) {
      sockets.push_back(socket);
    }
  }
  return sockets;
}

bool has_closed(int socket, int milliseconds) {
  pollfd waiting{.fd = socket, .events = POLLRDHUP, .revents = 0};
  return ::poll(&waiting, 1, milliseconds) > 0;
}

}  // namespace txinbox::test
