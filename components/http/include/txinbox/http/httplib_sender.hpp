#pragma once

/// @file
/// Lets an HTTP publisher send with cpp-httplib.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include <httplib.h>

#include <txinbox/http_publisher.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// A function that sends requests of an HTTP publisher: `http_publisher(options, http::httplib_sender(options))`. It
/// keeps one connection open, and reads at most 64 KiB of an answer. With https, the server's certificate is verified,
/// which needs `CPPHTTPLIB_OPENSSL_SUPPORT`.
///
/// @errors  std::invalid_argument for a URL that cpp-httplib does not support, such as https without OpenSSL.
/// @threads one at a time.
inline HttpSend httplib_sender(const HttpPublisherOptions& options) {
  const std::size_t host = options.url.find("://") + 3;
  const auto client = std::make_shared<httplib::Client>(options.url.substr(0, options.url.find_first_of("/?", host)));
  client->set_keep_alive(true);
  client->set_follow_location(false);
#ifdef CPPHTTPLIB_OPENSSL_SUPPORT
  if (!options.ca_file.empty()) client->set_ca_cert_path(options.ca_file);
#endif
  return [client](const Request& request, HttpTimeouts timeouts) -> std::optional<Response> {
    constexpr std::size_t longest_body = 64UL * 1024;
    const auto give_up = std::chrono::steady_clock::now() + timeouts.read;
    client->set_connection_timeout(timeouts.connect);
    client->set_write_timeout(timeouts.write);
    client->set_read_timeout(timeouts.read);
    httplib::Request sent;
    sent.method = request.method;
    sent.path = request.target;
    sent.body = request.body;
    for (const Header& header : request.headers) sent.headers.emplace(header.name, header.value);
    std::size_t size = 0;
    sent.content_receiver = [&](const char*, std::size_t bytes, std::uint64_t, std::uint64_t) {
      size += bytes;
      return size <= longest_body && std::chrono::steady_clock::now() < give_up;
    };
    std::optional<Response> head;
    const auto take = [&](const httplib::Response& from) {
      head = Response{.status = from.status};
      for (const auto& [name, value] : from.headers) head->headers.push_back({name, value});
      return true;
    };
    sent.response_handler = take;  // it is not called for an answer without a body
    const httplib::Result result = client->send(sent);
    if (result) take(*result);
    switch (result.error()) {
      case httplib::Error::Connection:
      case httplib::Error::BindIPAddress:
      case httplib::Error::SSLConnection:
      case httplib::Error::SSLLoadingCerts:
      case httplib::Error::SSLServerVerification:
      case httplib::Error::ConnectionTimeout:
        throw std::runtime_error("the HTTP server cannot be reached: " + httplib::to_string(result.error()));
      default:
        return head;  // the status is known even if the body did not come
    }
  };
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
