#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include <txinbox/redis.hpp>

#include "shared/component_url.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

using component::ComponentUrl;

constexpr std::string_view scheme = "redis://";
constexpr std::string_view form = "a Redis URL is redis://USER@HOST:PORT/DATABASE";

void set_parameter(const ComponentUrl& url, RedisOptions& options, const std::string& name, std::string value) {
  if (name == "prefix") {
    options.prefix = std::move(value);
  } else if (name == "keep") {
    options.keep = std::chrono::seconds(url.number<int>(name, value));
  } else if (name == "timeout") {
    options.timeout = std::chrono::milliseconds(url.number<int>(name, value));
  } else if (name == "wait_replicas") {
    options.wait_replicas = url.number<int>(name, value);
  } else if (name == "replica_timeout") {
    options.replica_timeout = std::chrono::milliseconds(url.number<int>(name, value));
  } else {
    // The text does not contain the name, because it can be a password.
    url.refuse("unknown parameter; there are prefix, keep, timeout, wait_replicas and replica_timeout");
  }
}

}  // namespace

RedisOptions redis_options_from_url(std::string_view url) {
  constexpr std::string_view with_tls = "rediss://";
  if (url.starts_with(with_tls)) {
    ComponentUrl(form, url, with_tls)
        .refuse("rediss:// asks for TLS, which this component does not have; use a tunnel (stunnel) to the server");
  }
  const ComponentUrl parsed(form, url, scheme);
  RedisOptions options;
  const std::string_view place = parsed.place();
  const auto slash = std::min(place.find('/'), place.size());
  const auto authority = parsed.authority(place.substr(0, slash), "TXINBOX_REDIS_PASSWORD");
  options.user = authority.user;
  options.host = authority.host;
  if (authority.port) options.port = *authority.port;
  const std::string_view database = place.substr(std::min(slash + 1, place.size()));
  if (!database.empty()) options.database = parsed.number<int>("the database", database);
  parsed.for_each_parameter(
      [&](const std::string& name, std::string value) { set_parameter(parsed, options, name, std::move(value)); });
  const char* password = std::getenv("TXINBOX_REDIS_PASSWORD");
  if (password != nullptr) options.password = password;
  return options;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
