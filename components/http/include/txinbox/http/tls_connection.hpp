#pragma once

/// @file
/// The part of OpenSSL that `httplib_sender` needs. A program that includes this header need not link libssl.

#include <cstddef>
#include <string>

#include <txinbox/version.hpp>

struct ssl_st;  // SSL of OpenSSL

namespace txinbox {
TXINBOX_API_BEGIN
namespace http {

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

}  // namespace http
TXINBOX_API_END
}  // namespace txinbox
