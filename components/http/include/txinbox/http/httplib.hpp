#pragma once

/// @file
/// Connects a guard to a route of cpp-httplib, and an operators' page to a server.

#include <string>
#include <utility>

#include <httplib.h>

#include <txinbox/http.hpp>
#include <txinbox/operator_page.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN
namespace http {

/// @cond
namespace detail {

/// Copies the parts of a multipart body, which are in no other member of cpp-httplib's request. Returns whether it
/// could. Versions of cpp-httplib that keep the parts elsewhere are not known here.
template <class From>
bool copy_parts(const From& from, Request& to) {
  if (!from.is_multipart_form_data()) return true;
  if constexpr (requires { from.files; }) {
    for (const auto& [name, part] : from.files)
      to.parts.push_back({name, part.filename, part.content_type, part.content});
    return true;
  } else {
    return false;
  }
}

/// The request without its parts.
inline Request request_of(const httplib::Request& from) {
  Request request{.method = from.method, .target = from.target, .body = from.body};
  for (const auto& [name, value] : from.headers) request.headers.push_back({name, value});
  return request;
}

inline void set(httplib::Response& to, Response response) {
  to.status = response.status;
  to.body = std::move(response.body);
  for (Header& each : response.headers) to.headers.emplace(std::move(each.name), std::move(each.value));
}

}  // namespace detail
/// @endcond

/// A handler of cpp-httplib for a route: `server.Post("/orders", httplib_route(guard, place_order));`
///
/// Set `server.set_payload_max_length`: cpp-httplib has no limit of its own, and reads the whole body before the guard
/// sees it. Set `server.set_tcp_nodelay(true)`: otherwise the answer to each further request of a connection waits for
/// an acknowledgement, which takes about 40 ms. Each connection has a thread of the server's pool, also while a copy of
/// a request waits.
///
/// cpp-httplib takes a multipart body apart: the handler finds its parts in `Request::parts`, and `Request::body` is
/// empty. With a cpp-httplib whose request has no member `files`, a multipart body gets 415, and no handler runs.
///
/// @param guard   it must outlive the server.
/// @param handler as `Guard::handle` takes it. It is copied.
/// @threads as `Guard::handle`.
template <class F>
httplib::Server::Handler httplib_route(Guard& guard, F handler) {
  return [&guard, handler = std::move(handler)](const httplib::Request& from, httplib::Response& to) {
    Request request = detail::request_of(from);
    if (!detail::copy_parts(from, request)) {
      to.status = 415;
      return;
    }
    detail::set(to, guard.handle(request, handler));
  };
}

/// Adds the routes of an operators' page to a server: `mount_page(server, page, "/txinbox")`.
///
/// It limits the body of a change itself: `set_payload_max_length` does not limit one that comes in chunks. It refuses
/// requests for parts of an answer (Range). Set `server.set_tcp_nodelay(true)`, as for `httplib_route`.
///
/// @param page it must outlive the server.
/// @param path that of `OperatorPageOptions::path`.
/// @threads as `OperatorPage::handle`.
inline void mount_page(httplib::Server& server, OperatorPage& page, const std::string& path = {}) {
  const auto answer = [&page](const httplib::Request& from, std::string body, httplib::Response& to) {
    if (!from.ranges.empty()) {
      to.status = 416;
      return;
    }
    Request request = detail::request_of(from);
    request.body = std::move(body);
    detail::set(to, page.handle(request));
  };
  std::string paths;
  for (const char c : path) paths += c == '.' ? std::string("\\.") : std::string(1, c);
  paths += "(/.*)?";
  server.Get(paths, [answer](const httplib::Request& from, httplib::Response& to) { answer(from, {}, to); });
  server.Post(paths, [answer](const httplib::Request& from, httplib::Response& to, const httplib::ContentReader& read) {
    constexpr std::size_t largest = 64UL * 1024;
    std::string body;
    bool fits = !from.is_multipart_form_data();
    if (fits) {
      read([&](const char* data, std::size_t size) {
        fits = body.size() + size <= largest;
        if (fits) body.append(data, size);
        return fits;
      });
    }
    if (fits) return answer(from, std::move(body), to);
    to.status = 413;
    to.headers.emplace("Connection", "close");  // the rest of the body is not read
  });
}

}  // namespace http
TXINBOX_API_END
}  // namespace txinbox
