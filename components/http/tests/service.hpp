#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <soci/soci.h>
#include <txinbox/http.hpp>

namespace txinbox::test {

/// A service that listens on the loopback, with one guarded route: POST /orders.
class Service {
 public:
  using Handler = std::function<http::Response(soci::session&, const http::Request&)>;
  using LeaseHandler = std::function<http::Response(Lease&, const http::Request&)>;

  Service(http::Guard& guard, Handler handler);
  Service(http::Guard& guard, LeaseHandler handler);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  int port() const;

  /// Sends POST /orders with this body and these header fields. Fails the test if no answer comes.
  http::Response post(const std::string& body, const std::vector<http::Header>& headers) const;

  /// Sends POST /orders with this Idempotency-Key and this body.
  http::Response order(const std::string& key, const std::string& body) const {
    return post(body, {{"Idempotency-Key", key}});
  }

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Sends POST `target`. Fails the test if no answer comes.
http::Response post(int port, const std::string& target, const std::string& body,
                    const std::vector<http::Header>& headers, const std::string& content_type = "application/json");

/// The value of a header field, or "-" if it is missing.
inline std::string field(const http::Response& response, const std::string& name) {
  return std::string(http::find_header(response.headers, name).value_or("-"));
}

}  // namespace txinbox::test
