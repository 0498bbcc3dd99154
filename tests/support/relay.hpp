#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>

namespace txinbox::test {

/// A relay between clients and the server that a URL names. It has its own port on the loopback. `serve` passes the
/// data. Each connection gets a thread, which calls `serve` with both sockets. The sockets are closed when `serve`
/// returns. `serve` must return soon after `ending` is true.
class Relay {
 public:
  using Serve = std::function<void(int client, int server)>;

  Relay(const std::string& url, Serve serve);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// The same URL through the relay.
  const std::string& url() const { return url_; }

  /// After this, connections go to this server instead.
  void forward_to(const std::string& url);

  bool ending() const { return ending_; }

 private:
  void accept_all();
  void serve_one(int client);

  Serve serve_;
  std::string url_;
  std::atomic<int> server_port_ = 0;
  int listener_ = -1;
  std::atomic<bool> ending_ = false;
  std::thread acceptor_;
};

/// Sends all of it. If the other side closes the connection, it sends less.
void send_all(int to, const char* data, std::size_t size);

}  // namespace txinbox::test
