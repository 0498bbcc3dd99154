#pragma once

/// @file
/// The parts of a connection that `httplib_sender` needs: a bound for the time of its requests, and its TLS. A program
/// that includes this header need not link libssl.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include <txinbox/version.hpp>

struct ssl_st;  // SSL of OpenSSL

namespace txinbox {
TXINBOX_API_BEGIN
namespace http {

/// @cond
namespace detail {

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

/// A TLS connection of OpenSSL whose handshake is complete. It does not own the connection.
///
/// @blocking as its socket does.
/// @threads  one at a time.
class TlsConnection {
 public:
  /// `connection`: an `SSL*` that outlives this object.
  explicit TlsConnection(ssl_st* connection) noexcept;

  /// Reads at most this number of bytes. Returns 0 or less at the end of the connection, and after an error.
  long read(char* to, std::size_t size) const noexcept;

  /// Writes at least one and at most this number of bytes. Returns a negative number after an error.
  long write(const char* from, std::size_t size) const noexcept;

  /// Whether the other end's certificate is for this name or IP address, as OpenSSL decides it. The certificate's
  /// common name counts only if the certificate has no names in `subjectAltName`.
  bool is_for(const std::string& host) const noexcept;

 private:
  ssl_st* connection_;
};

}  // namespace detail
/// @endcond
}  // namespace http
TXINBOX_API_END
}  // namespace txinbox
