#include "support/proxy.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <thread>

namespace txinbox::test {

Proxy::Proxy(const std::string& url) : relay_(url, [this](int client, int server) { serve(client, server); }) {}

void Proxy::serve(int client, int server) {
  std::array<char, 65536> buffer{};
  bool clients_turn = true;  // after one side has sent, the other side is next
  std::array<pollfd, 2> ends = {pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}};
  while (!relay_.ending()) {
    if (silent_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    if (poll(ends.data(), ends.size(), 20) <= 0) continue;
    const bool from_server = ends[1].revents != 0;
    const ssize_t size = recv(from_server ? server : client, buffer.data(), buffer.size(), 0);
    if (size <= 0) break;
    if (from_server && replies_until_loss_ > 0 && --replies_until_loss_ == 0) {
      ++lost_;
      break;
    }
    std::this_thread::sleep_for(delay_.load());
    if (!from_server && clients_turn) ++round_trips_;
    clients_turn = from_server;
    send_all(from_server ? client : server, buffer.data(), static_cast<std::size_t>(size));
  }
}

}  // namespace txinbox::test
