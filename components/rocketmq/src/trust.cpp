#include "trust.hpp"

#include <memory>
#include <string>

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {

bool is_untrusted(const RocketMqServer& server) {
  constexpr int patience = 3;    // seconds
  constexpr unsigned step = 20;  // milliseconds
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  if (!context) return false;
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const bool has_authorities = server.ca_file.empty()
                                   ? SSL_CTX_set_default_verify_paths(context.get()) == 1
                                   : SSL_CTX_load_verify_file(context.get(), server.ca_file.c_str()) == 1;
  if (!has_authorities) return false;
  const std::unique_ptr<BIO, void (*)(BIO*)> connection(BIO_new_ssl_connect(context.get()), BIO_free_all);
  SSL* ssl = nullptr;
  if (!connection || BIO_get_ssl(connection.get(), &ssl) != 1 || ssl == nullptr) return false;
  // SSL_set_tlsext_host_name and BIO_set_conn_hostname, without their casts
  std::string host = server.host;
  SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, host.data());
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(ssl);
  if (X509_VERIFY_PARAM_set1_ip_asc(wanted, server.host.c_str()) != 1) {
    X509_VERIFY_PARAM_set1_host(wanted, server.host.c_str(), server.host.size());
  }
  std::string address = address_of(server);
  BIO_ctrl(connection.get(), BIO_C_SET_CONNECT, 0, address.data());
  BIO_set_nbio(connection.get(), 1);
  BIO_do_connect_retry(connection.get(), patience, step);
  return SSL_get_verify_result(ssl) != X509_V_OK;
}

}  // namespace rocketmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
