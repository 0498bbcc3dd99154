#include <txinbox/http/client_connection.hpp>

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <limits>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace detail {
namespace {

int bounded(std::size_t size) noexcept {
  return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
}

}  // namespace

TlsConnection::TlsConnection(ssl_st* connection) noexcept : connection_(connection) {
  SSL_set_mode(connection, SSL_MODE_AUTO_RETRY);  // a record without data, such as a session ticket, is no error
}

long TlsConnection::read(char* to, std::size_t size) const noexcept { return SSL_read(connection_, to, bounded(size)); }

long TlsConnection::write(const char* from, std::size_t size) const noexcept {
  const int count = SSL_write(connection_, from, bounded(size));
  return count > 0 ? count : -1;
}

bool TlsConnection::is_for(const std::string& host) const noexcept {
  X509* certificate = SSL_get1_peer_certificate(connection_);
  if (certificate == nullptr) return false;
  const int as_address = X509_check_ip_asc(certificate, host.c_str(), 0);  // -2: the host is not an address
  const bool result =
      as_address == -2 ? X509_check_host(certificate, host.data(), host.size(), 0, nullptr) == 1 : as_address == 1;
  X509_free(certificate);
  return result;
}

}  // namespace detail
}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
