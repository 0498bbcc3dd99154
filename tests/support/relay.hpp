#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>

namespace txinbox::test {

/// A relay between clients and the server that a URL names, on a loopback port of its own. `serve` passes the data. It
/// is called for each connection, on a thread of its own, with both sockets, which are closed when it returns. It must
/// return soon after `ending` is true.
class Relay {
 public:
  using Serve = std::function<void(int client, int server)>;

  Relay(const std::string& url, Serve serve);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// The same URL through the relay.
  const std::string& url() const { return url_; }

  /// From now on, connections are made to this server instead.
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

/// Sends all of it, or as much as a peer that goes away takes.
void send_all(int to, const char* data, std::size_t size);

}  // namespace txinbox::test
