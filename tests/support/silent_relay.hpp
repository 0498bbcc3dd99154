#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

#include "support/relay.hpp"

namespace txinbox::test {

/// A relay to a server that can fall silent, as the server does when its process is stopped: nothing comes from it and
/// nothing is read, and the connections stay open. New connections are accepted.
class SilentRelay {
 public:
  /// `address`: "127.0.0.1:PORT".
  explicit SilentRelay(const std::string& address)
      : relay_("tcp://" + address + "/", [this](int client, int server) { serve(client, server); }) {}

  /// "127.0.0.1:PORT" of the relay.
  std::string address() const {
    const std::string_view url = relay_.url();
    return std::string(url.substr(6, url.size() - 7));
  }

  /// Falls silent after it has passed this many more bytes of the server.
  void fall_silent_after(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    left_ = bytes;
  }

 private:
  /// Returns how many of these bytes pass.
  std::size_t take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (left_ == no_limit) return bytes;
    const std::size_t taken = bytes < left_ ? bytes : left_;
    left_ -= taken;
    return taken;
  }
  bool is_silent() {
    const std::lock_guard lock(mutex_);
    return left_ == 0;
  }

  void serve(int client, int server) {
    std::array<pollfd, 2> ends{pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}};
    std::vector<char> bytes(100'000);
    while (!relay_.ending()) {
      if (is_silent()) {
        ::poll(nullptr, 0, 20);
        continue;
      }
      if (::poll(ends.data(), ends.size(), 20) <= 0) continue;
      const bool from_client = ends[0].revents != 0;
      const ssize_t got = ::recv(from_client ? client : server, bytes.data(), bytes.size(), 0);
      if (got <= 0) return;
      const auto size = static_cast<std::size_t>(got);
      if (from_client) {
        send_all(server, bytes.data(), size);
      } else {
        send_all(client, bytes.data(), take(size));
      }
    }
  }

  static constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

  std::mutex mutex_;
  std::size_t left_ = no_limit;
  Relay relay_;  // the last member: its threads use the others
};

}  // namespace txinbox::test
