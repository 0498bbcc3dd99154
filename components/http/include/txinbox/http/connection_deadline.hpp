#pragma once

/// @file
/// Bounds the time of the requests of an HTTP client that cannot do this itself.

#include <chrono>
#include <memory>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN
namespace http {

/// Bounds the time of a client's requests, whatever the server sends: at its end, a thread shuts the connection down.
/// So the client's next read or write fails.
///
/// The time-outs of a client often bound only the wait for the next byte, as those of cpp-httplib 0.11 do. A server
/// that sends a byte now and then can hold such a client for ever, also during the TLS handshake.
///
/// @limits  one request at a time. The time in which a client resolves the server's name is not bounded. The options
///          `timeout` and `attempts` in /etc/resolv.conf bound it.
/// @errors  std::system_error if no thread can be started.
/// @threads one at a time.
class ConnectionDeadline {
 public:
  /// Starts the thread.
  ConnectionDeadline();
  /// Ends the thread. The connection stays open.
  ~ConnectionDeadline();
  ConnectionDeadline(const ConnectionDeadline&) = delete;
  ConnectionDeadline& operator=(const ConnectionDeadline&) = delete;

  /// The client must call this for each socket that it opens, before it connects. A socket that is opened too late, or
  /// that cannot be watched, is shut down at once.
  void opened(int socket) noexcept;

  /// Begins a request, which must have ended before this time.
  void begin(std::chrono::steady_clock::time_point end) noexcept;

  /// Ends the request. `is_open`: whether the client keeps its connection for the next one.
  void end(bool is_open) noexcept;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace http
TXINBOX_API_END
}  // namespace txinbox
