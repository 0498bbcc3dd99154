#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace txinbox::test {

/// A TCP proxy on the loopback that can lose a server's reply: what the client sent arrives, and the
/// answer does not.
class Proxy {
 public:
  /// In front of the server that `url` names.
  explicit Proxy(const std::string& url);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  /// The same URL through the proxy.
  const std::string& url() const { return url_; }

  /// The next reply is dropped, and its connection with it.
  void lose_next_reply() { lose_reply_ = true; }

  /// How many replies were lost so far.
  int lost() const { return lost_; }

 private:
  void accept_all();
  void serve(int client);

  std::string url_;
  std::string port_;
  int listener_ = -1;
  std::atomic<bool> lose_reply_ = false;
  std::atomic<int> lost_ = 0;
  std::atomic<bool> ending_ = false;
  std::thread acceptor_;
};

}  // namespace txinbox::test
