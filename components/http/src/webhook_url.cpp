#include "webhook_url.hpp"

#include <algorithm>
#include <cstdlib>

#include <txinbox/error.hpp>
#include <txinbox/http_publisher.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

[[noreturn]] void refuse_url(const std::string& text) {
  throw Error(ErrorCode::invalid_argument,
              "the URL of an HTTP publisher is http://HOST:PORT/PATH or https://…: " + text);
}

}  // namespace

std::string target_of(std::string_view url) {
  if (url.starts_with("https://")) {
    url.remove_prefix(8);
  } else if (url.starts_with("http://")) {
    url.remove_prefix(7);
  } else {
    refuse_url("this URL has another scheme");
  }
  // A request line must not contain spaces. A fragment is not sent to a server.
  if (std::ranges::any_of(url, [](char c) { return c <= ' ' || c > '~' || c == '#'; })) {
    refuse_url("it has a character that must be percent-encoded");
  }
  const auto end = std::min(url.find_first_of("/?"), url.size());
  const std::string_view authority = url.substr(0, end);
  if (authority.find('@') != std::string_view::npos) {
    refuse_url(
        "it holds a user, whose password other users of this machine could read; put the field Authorization into the "
        "environment variable TXINBOX_HTTP_AUTHORIZATION");
  }
  if (authority.empty() || authority.starts_with(':')) refuse_url("the host is missing");
  std::string target(url.substr(end));
  if (!target.starts_with('/')) target.insert(target.begin(), '/');
  return target;
}

std::string server_of(std::string_view url) {
  const auto authority = url.find("://") + 3;
  return std::string(url.substr(0, url.find_first_of("/?", authority)));
}

}  // namespace http

HttpPublisherOptions http_publisher_options_from_url(std::string_view url) {
  HttpPublisherOptions options{.url = std::string(url)};
  static_cast<void>(http::target_of(url));
  const char* authorization = std::getenv("TXINBOX_HTTP_AUTHORIZATION");
  if (authorization != nullptr) options.authorization = authorization;
  return options;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
