#include "support/relay.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/url.hpp"

namespace txinbox::test {
namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

void send_at_once(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

void send_all(int to, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = send(to, data, size, MSG_NOSIGNAL);
    if (sent <= 0) return;
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
}

Relay::Relay(const std::string& url, Serve serve) : serve_(std::move(serve)), url_(url) {
  const std::string port = detail::parse_url(url).port;
  server_port_ = std::stoi(port);
  listener_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener_, 64) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("the relay cannot listen on the loopback");
  }
  const std::string old = ":" + port + "/";
  url_.replace(url_.rfind(old), old.size(), ":" + std::to_string(ntohs(address.sin_port)) + "/");
  acceptor_ = std::thread([this] { accept_all(); });
}

Relay::~Relay() {
  ending_ = true;
  acceptor_.join();
  close(listener_);
}

void Relay::forward_to(const std::string& url) { server_port_ = std::stoi(detail::parse_url(url).port); }

void Relay::accept_all() {
  std::vector<std::thread> connections;
  while (!ending_) {
    pollfd ready{listener_, POLLIN, 0};
    if (poll(&ready, 1, 5) > 0) {
      connections.emplace_back([this, client = accept(listener_, nullptr, nullptr)] { serve_one(client); });
    }
  }
  for (std::thread& each : connections) each.join();
}

void Relay::serve_one(int client) {
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = loopback(server_port_);
  send_at_once(client);
  send_at_once(server);
  if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) serve_(client, server);
  close(server);
  close(client);
}

}  // namespace txinbox::test
