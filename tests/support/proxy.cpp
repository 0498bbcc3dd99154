#include "support/proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <stdexcept>

#include "url.hpp"

namespace txinbox::test {
namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

void send_all(int to, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = send(to, data, size, MSG_NOSIGNAL);
    if (sent <= 0) return;
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
}

}  // namespace

Proxy::Proxy(const std::string& url) : url_(url), port_(detail::parse_url(url).port) {
  listener_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener_, 64) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("the proxy cannot listen on the loopback");
  }
  const std::string old = ":" + port_ + "/";
  url_.replace(url_.rfind(old), old.size(), ":" + std::to_string(ntohs(address.sin_port)) + "/");
  acceptor_ = std::thread([this] { accept_all(); });
}

Proxy::~Proxy() {
  ending_ = true;
  acceptor_.join();
  close(listener_);
}

void Proxy::accept_all() {
  std::vector<std::thread> connections;
  while (!ending_) {
    pollfd ready{listener_, POLLIN, 0};
    if (poll(&ready, 1, 20) > 0) {
      connections.emplace_back([this, client = accept(listener_, nullptr, nullptr)] { serve(client); });
    }
  }
  for (std::thread& each : connections) each.join();
}

void Proxy::serve(int client) {
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = loopback(std::stoi(port_));
  const int on = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    std::array<char, 65536> buffer{};
    bool clients_turn = true;  // whoever spoke last, the other is awaited
    std::array<pollfd, 2> ends = {pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}};
    while (!ending_) {
      if (poll(ends.data(), ends.size(), 20) <= 0) continue;
      const bool from_server = ends[1].revents != 0;
      const ssize_t size = recv(from_server ? server : client, buffer.data(), buffer.size(), 0);
      if (size <= 0) break;
      if (from_server && replies_until_loss_ > 0 && --replies_until_loss_ == 0) {
        ++lost_;
        break;
      }
      if (!from_server && clients_turn) ++round_trips_;
      clients_turn = from_server;
      send_all(from_server ? client : server, buffer.data(), static_cast<std::size_t>(size));
    }
  }
  close(server);
  close(client);
}

}  // namespace txinbox::test
