#pragma once

/// @file
/// Converts the messages of Boost.Beast.

#include <string>
#include <utility>

#include <boost/beast/http.hpp>

#include <txinbox/http.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN
namespace http {

/// The request as a guard takes it. Give the parser a `body_limit`.
template <class Fields>
Request from_beast(const boost::beast::http::request<boost::beast::http::string_body, Fields>& from) {
  Request request{
      .method = std::string(from.method_string()), .target = std::string(from.target()), .body = from.body()};
  for (const auto& field : from) {
    request.headers.push_back({std::string(field.name_string()), std::string(field.value())});
  }
  return request;
}

/// The answer of a guard to that request. The payload is prepared, and the connection kept alive as the client wants.
template <class Fields>
boost::beast::http::response<boost::beast::http::string_body> to_beast(
    Response from, const boost::beast::http::request<boost::beast::http::string_body, Fields>& request) {
  boost::beast::http::response<boost::beast::http::string_body> response;
  response.version(request.version());
  response.result(static_cast<unsigned>(from.status));
  for (const Header& each : from.headers) response.insert(each.name, each.value);
  response.body() = std::move(from.body);
  response.keep_alive(request.keep_alive());
  response.prepare_payload();
  return response;
}

}  // namespace http
TXINBOX_API_END
}  // namespace txinbox
