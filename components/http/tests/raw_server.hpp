#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace txinbox::test {

/// A server on the loopback that answers what a test wants, also what is not HTTP. It serves one connection at a time.
class RawServer {
 public:
  /// Serves a connection. The server closes it afterwards, and shuts it down when the test is over.
  using Serve = std::function<void(int socket)>;

  /// `receive_buffer`: the size of the buffer for what the client sends, in bytes. 0: that of the system.
  explicit RawServer(Serve serve, int receive_buffer = 0);
  ~RawServer();
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  /// "http://127.0.0.1:PORT/events". The scheme can be another one.
  std::string url(const std::string& scheme = "http") const;
  int port() const { return port_; }

 private:
  void run();

  const Serve serve_;
  int listener_;
  int port_ = 0;
  std::mutex mutex_;
  int current_ = -1;  ///< The connection that is served.
  bool is_over_ = false;
  std::thread thread_;
};

/// Reads the head of a request, and what has come with it. Empty if the client has closed the connection.
std::string read_head(int socket);

/// Reads a request with its body, and returns it. Empty if the client has closed the connection.
std::string read_request(int socket);

/// Sends the bytes. Returns whether the connection took them all.
bool send_all(int socket, const std::string& bytes);

/// The sockets of this process that are connected to this port of the loopback.
std::vector<int> sockets_to(int port);

/// Waits until the client closes its end, at most this long. Returns whether it has done so.
bool has_closed(int socket, int milliseconds);

}  // namespace txinbox::test
