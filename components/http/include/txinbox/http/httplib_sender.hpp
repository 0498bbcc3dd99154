#pragma once

/// @file
/// Lets an HTTP publisher send with cpp-httplib.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <httplib.h>

#include <txinbox/http/client_connection.hpp>
#include <txinbox/http_publisher.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN
namespace http {
namespace detail {

/// Reads at most a number of bytes from a stream of cpp-httplib. cpp-httplib 0.11 has no limit for the head of an
/// answer, and a status line of 60 kB lets its regular expression overflow the stack.
class BoundedStream : public httplib::Stream {
 public:
  BoundedStream(httplib::Stream& from, std::size_t& left) : from_(from), left_(left) {}

  bool is_readable() const override { return from_.is_readable(); }
  bool is_writable() const override { return from_.is_writable(); }
  ssize_t read(char* to, std::size_t size) override {
    if (left_ == 0) return -1;
    const ssize_t count = from_.read(to, std::min(size, left_));
    if (count > 0) left_ -= static_cast<std::size_t>(count);
    return count;
  }
  ssize_t write(const char* from, std::size_t size) override { return from_.write(from, size); }
  void get_remote_ip_and_port(std::string& ip, int& port) const override { from_.get_remote_ip_and_port(ip, port); }
  void get_local_ip_and_port(std::string& ip, int& port) const override { from_.get_local_ip_and_port(ip, port); }
  socket_t socket() const override { return from_.socket(); }

 private:
  httplib::Stream& from_;
  std::size_t& left_;
};

/// The state of a request.
struct RequestState {
  std::size_t left = 0;          ///< How many bytes the client may still read.
  bool is_other_server = false;  ///< The server's certificate is for another name.
};

/// A client that reads at most `left` bytes of an answer.
class BoundedClient : public httplib::ClientImpl, public RequestState {
 public:
  using httplib::ClientImpl::ClientImpl;

 private:
  bool process_socket(const Socket& socket, std::function<bool(httplib::Stream&)> callback) override {
    return httplib::detail::process_client_socket(socket.sock, read_timeout_sec_, read_timeout_usec_,
                                                  write_timeout_sec_, write_timeout_usec_, [&](httplib::Stream& from) {
                                                    BoundedStream stream(from, left);
                                                    return callback(stream);
                                                  });
  }
};

#ifdef CPPHTTPLIB_OPENSSL_SUPPORT
/// A TLS connection whose socket blocks. `ConnectionDeadline` ends its waits.
class TlsStream : public httplib::Stream {
 public:
  TlsStream(socket_t socket, SSL* connection) : socket_(socket), connection_(connection) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, std::size_t size) override { return connection_.read(to, size); }
  ssize_t write(const char* from, std::size_t size) override { return connection_.write(from, size); }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }
  bool is_for(const std::string& host) const { return connection_.is_for(host); }

 private:
  const socket_t socket_;
  const TlsConnection connection_;
};

/// The same as `BoundedClient` with TLS.
class BoundedTlsClient : public httplib::SSLClient, public RequestState {
 public:
  using httplib::SSLClient::SSLClient;

 private:
  bool process_socket(const Socket& socket, std::function<bool(httplib::Stream&)> callback) override {
    TlsStream from(socket.sock, socket.ssl);
    // cpp-httplib accepts the common name also if the certificate's names are others.
    is_other_server = !from.is_for(host_);
    if (is_other_server) return false;
    BoundedStream stream(from, left);
    return callback(stream);
  }
};
#endif

/// Splits "HOST:PORT", "[::1]:PORT" or "HOST". The host has no brackets.
inline std::pair<std::string, int> host_and_port(std::string_view authority, int default_port) {
  const auto wrong = [] { return std::invalid_argument("the URL of an HTTP publisher has an invalid host or port"); };
  const std::size_t end = authority.starts_with('[') ? authority.find(']') : authority.find(':');
  std::string_view host = authority.substr(0, end);
  std::string_view rest = end == std::string_view::npos ? std::string_view() : authority.substr(end);
  if (authority.starts_with('[')) {
    if (rest.empty()) throw wrong();
    host.remove_prefix(1);
    rest.remove_prefix(1);
  }
  int port = default_port;
  if (!rest.empty()) {
    const auto [last, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), port);
    if (rest[0] != ':' || error != std::errc() || last != rest.data() + rest.size()) throw wrong();
  }
  if (host.empty() || port < 1 || port > 65535) throw wrong();
  return {std::string(host), port};
}

/// Sends requests with a `BoundedClient` or a `BoundedTlsClient`. `server`: scheme, host and port, for error texts.
template <class Client>
HttpSend sender_of(std::shared_ptr<Client> client, const std::string& server) {
  const auto deadline = std::make_shared<detail::ConnectionDeadline>();
  client->set_keep_alive(true);
  client->set_follow_location(false);
  client->set_url_encode(false);  // it would change characters that a signature of the URL covers
  client->set_tcp_nodelay(true);  // a body is a write of its own, which would wait for the acknowledgement of the head
  client->set_socket_options([deadline](socket_t socket) { deadline->opened(socket); });
  return [client = std::move(client), deadline, server](const Request& request,
                                                        HttpTimeouts timeouts) -> std::optional<Response> {
    constexpr std::size_t longest_head = 16UL * 1024;
    constexpr std::size_t longest_body = 64UL * 1024;
    client->set_connection_timeout(timeouts.connect);
    client->set_write_timeout(timeouts.write);
    client->set_read_timeout(timeouts.total);
    httplib::Request sent;
    sent.method = request.method;
    sent.path = request.target;
    sent.body = request.body;
    for (const Header& header : request.headers) sent.headers.emplace(header.name, header.value);
    std::size_t size = 0;
    sent.content_receiver = [&](const char*, std::size_t bytes, std::uint64_t, std::uint64_t) {
      size += bytes;
      return size <= longest_body;
    };
    std::optional<Response> head;
    const auto take = [&](const httplib::Response& from) {
      client->left = 2 * longest_body;  // with the framing of its chunks
      head = Response{.status = from.status};
      for (const auto& [name, value] : from.headers) head->headers.push_back({name, value});
      return true;
    };
    sent.response_handler = take;  // it is not called for an answer without a body
    client->left = longest_head;
    client->is_other_server = false;
    // cpp-httplib's time-outs begin anew with each byte, and its stop() waits for the end of a TLS handshake.
    deadline->begin(std::chrono::steady_clock::now() + timeouts.total);
    const httplib::Result result = client->send(sent);
    deadline->end(client->is_socket_open() != 0);
    if (client->is_other_server) throw std::runtime_error(server + ": the server's certificate is for another name");
    if (result) take(*result);
    switch (result.error()) {
      case httplib::Error::Connection:
      case httplib::Error::BindIPAddress:
      case httplib::Error::SSLConnection:
      case httplib::Error::SSLLoadingCerts:
      case httplib::Error::SSLServerVerification:
      case httplib::Error::ConnectionTimeout:
        throw std::runtime_error(server + ": the server cannot be reached: " + httplib::to_string(result.error()));
      default:
        return head;  // the status is known even if the body did not come
    }
  };
}

}  // namespace detail

/// A function that sends requests of an HTTP publisher: `http_publisher(options, http::httplib_sender(options))`. It
/// keeps one connection open, and reads at most 16 KiB of the head and 64 KiB of the body of an answer. With https, the
/// server's certificate is verified, which needs `CPPHTTPLIB_OPENSSL_SUPPORT`.
///
/// @limits  cpp-httplib 0.11 to 0.18. The time in which the client resolves the server's name is not bounded. The
/// options
///          `timeout` and `attempts` in /etc/resolv.conf bound it.
/// @errors  std::invalid_argument for a URL that cpp-httplib does not support, such as https without OpenSSL.
///          std::system_error if no thread can be started.
/// @threads one at a time.
inline HttpSend httplib_sender(const HttpPublisherOptions& options) {
  const std::string_view url = options.url;
  const std::size_t begin = url.find("://") + 3;
  const std::string_view authority = url.substr(begin, url.find_first_of("/?", begin) - begin);
  const std::string server(url.substr(0, begin + authority.size()));  // the rest of the URL can be a secret
  if (!url.starts_with("https:")) {
    const auto [host, port] = detail::host_and_port(authority, 80);
    return detail::sender_of(std::make_shared<detail::BoundedClient>(host, port), server);
  }
#ifdef CPPHTTPLIB_OPENSSL_SUPPORT
  const auto [host, port] = detail::host_and_port(authority, 443);
  auto client = std::make_shared<detail::BoundedTlsClient>(host, port);
  if (!options.ca_file.empty()) client->set_ca_cert_path(options.ca_file);
  return detail::sender_of(std::move(client), server);
#else
  throw std::invalid_argument("cpp-httplib has no TLS here; define CPPHTTPLIB_OPENSSL_SUPPORT");
#endif
}

}  // namespace http
TXINBOX_API_END
}  // namespace txinbox
